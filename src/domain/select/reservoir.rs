//! A random sample of a stream of values whose length is not known in advance.
//!
//! `fastrand::Rng::choose_multiple` needs an iterator, and a scan waits for the server between two
//! pages.

/// A sample in which each offered value has the same chance to be included: algorithm R (Vitter
/// 1985, <https://doi.org/10.1145/3147.3165>).
#[derive(Debug)]
pub(crate) struct Reservoir<T> {
    most: usize,
    came: u64,
    values: Vec<T>,
}

impl<T> Reservoir<T> {
    /// An empty sample of at most this many values.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, came: 0, values: Vec::new() }
    }

    /// Offers a value to the sample. `below` returns a random number below its argument.
    pub(crate) fn offer(&mut self, value: T, below: impl FnOnce(u64) -> u64) {
        self.came += 1;
        if self.values.len() < self.most {
            self.values.push(value);
            return;
        }
        // A number beyond the sample leaves the sample as it is.
        if let Ok(place) = usize::try_from(below(self.came))
            && let Some(former) = self.values.get_mut(place)
        {
            *former = value;
        }
    }

    /// How many values were offered.
    pub(crate) fn came(&self) -> u64 {
        self.came
    }

    /// The sample.
    pub(crate) fn into_values(self) -> Vec<T> {
        self.values
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn sample(most: usize, came: u64) -> Vec<u64> {
        let mut random = Rng::with_seed(7);
        let mut reservoir = Reservoir::new(most);
        for value in 0..came {
            reservoir.offer(value, |bound| random.u64(..bound));
        }
        assert_eq!(reservoir.came(), came);
        reservoir.into_values()
    }

    #[test]
    fn few_values_are_all_there_and_of_many_some_from_everywhere() {
        assert_eq!(sample(4, 3), [0, 1, 2]);
        let some = sample(1_000, 100_000);
        assert_eq!(some.len(), 1_000);
        let of_the_first_half = some.iter().filter(|value| **value < 50_000).count();
        assert!((400..600).contains(&of_the_first_half), "{of_the_first_half}");
    }
}

//! How often what was removed had been looked at.
//!
//! Nobody knows from outside at which of its looks a command makes up its mind. But what changes between a look and the
//! removal has been read less often since its change than what nobody touched is read in all: such a removal goes by a look
//! at something else.

use std::collections::HashMap;

use crate::deployment::Role;
use crate::keyspace::Entry;

/// Untouched removals that make a rule of how often a command looks.
const ENOUGH: usize = 3;

/// A command, a schema, and which of a record's Redis keys.
pub type Group = (&'static str, String, Role);

/// The removals of a storm.
#[derive(Default)]
pub struct Looks {
    /// How often each of those that nobody touched was looked at: how many, and the least.
    untouched: HashMap<Group, (usize, usize)>,
    /// Those that changed since they were first looked at: how often after that, and what is to be said.
    changed: Vec<(Group, usize, String)>,
}

impl Looks {
    /// Takes a removal of an entry that was read at these times. A lock that was without expiry in between is the one that
    /// was seen before.
    pub fn add(
        &mut self,
        group: Group,
        entry: &Entry,
        reads: &[u64],
        said: impl FnOnce() -> String,
    ) {
        let since = reads.iter().filter(|read| entry.stood_like_this(**read)).count();
        if since < reads.len() {
            let (written, former) = (entry.written, &entry.former);
            let said = format!("{}; written at {written} ({former:?}), read at {reads:?}", said());
            self.changed.push((group, since, said));
        } else if since > 0 {
            let (count, least) = self.untouched.entry(group).or_insert((0, since));
            *count += 1;
            *least = since.min(*least);
        }
    }

    /// Those that were looked at less often since they changed than what nobody touched, and in all how many there were
    /// to be told from.
    pub fn too_few(&self) -> (Vec<(&'static str, String)>, usize) {
        let too_few = self.changed.iter().filter_map(|(group, since, said)| {
            let (count, least) = self.untouched.get(group)?;
            let said = || format!("{said}: {since} looks since it changed, else {least}");
            // A walk comes by a record of two Redis keys twice, and may choose what stands there the second time: one page
            // less, and one look at what was chosen less.
            let twice = if group.2 == Role::Both { 0 } else { 2 };
            (*count >= ENOUGH && since + twice < *least).then(|| (group.0, said()))
        });
        (too_few.collect(), self.changed.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Who;

    /// A lock without expiry, written at this time.
    fn lock(written: u64) -> Entry {
        Entry {
            value: b"lock".as_slice().into(),
            ends_at: None,
            written,
            set: written,
            by: Who::Worker(0),
            spoilt: false,
            former: Vec::new(),
        }
    }

    fn group() -> Group {
        ("purge", "express".to_owned(), Role::Both)
    }

    #[test]
    fn what_changed_after_the_look_that_chose_it_is_told_from_what_was_chosen_anew() {
        let mut looks = Looks::default();
        for _ in 0..ENOUGH {
            looks.add(group(), &lock(5), &[10, 20], String::new);
        }
        looks.add(group(), &lock(15), &[10, 20], || "between".to_owned());
        looks.add(group(), &lock(15), &[10, 20, 30], || "chosen anew".to_owned());
        let (wrong, all) = looks.too_few();
        assert_eq!((wrong.len(), all), (1, 2));
        assert!(wrong[0].1.starts_with("between"));
    }

    #[test]
    fn what_had_another_expiry_in_between_is_what_was_seen_before() {
        let mut looks = Looks::default();
        for _ in 0..ENOUGH {
            looks.add(group(), &lock(5), &[10, 20, 30], String::new);
        }
        let mut lock = lock(5);
        lock.former = vec![(5, None), (12, Some(99))];
        lock.written = 15;
        looks.add(group(), &lock, &[10, 20, 30], String::new);
        assert_eq!(looks.too_few(), (Vec::new(), 0));
    }

    #[test]
    fn what_a_walk_comes_by_twice_may_be_chosen_the_second_time() {
        let (mut looks, of_two) =
            (Looks::default(), ("purge", "event-consumer".to_owned(), Role::Lock));
        for _ in 0..ENOUGH {
            looks.add(of_two.clone(), &lock(5), &[10, 20, 30, 40], String::new);
        }
        looks.add(of_two.clone(), &lock(25), &[10, 20, 30, 40], || "chosen anew".to_owned());
        looks.add(of_two, &lock(35), &[10, 20, 30, 40], || "between".to_owned());
        let (wrong, _) = looks.too_few();
        assert!(wrong.len() == 1 && wrong[0].1.starts_with("between"), "{wrong:?}");
    }
}

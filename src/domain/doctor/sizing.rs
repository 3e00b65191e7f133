//! How much memory records need, from a sample of them.
//!
//! The number of results that exist at a time is their rate of arrival times their TTL. The sample
//! shows both: the time left of a result is its TTL minus its age.

/// The least number of results from which a rate is derived.
pub(super) const MIN_RESULTS: usize = 20;

/// Memory that MEMORY USAGE does not count, per Redis key with a TTL: its part of the tables of
/// keys and of expiries. On Redis 6.2, 7.0 and 8 with up to 120,000 keys it was between 28 and 77
/// bytes.
const TABLE_BYTES: u64 = 64;

/// Results whose ages span less than this part of their TTL show no rate: one load or burst may
/// have written them all.
const MIN_SPAN: u64 = 100;

/// The points in time at which the memory is computed. They are half a percent of the longest TTL
/// apart.
const POINTS: u64 = 200;

/// A record of a sample, and the memory that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedRecord {
    /// How long it stays, in milliseconds; `None` if it never expires.
    pub(crate) left_ms: Option<u64>,
    /// Memory of its Redis keys; `None` if the server did not report it.
    pub(crate) bytes: Option<u64>,
    /// How many Redis keys of it exist.
    pub(crate) keys: u64,
    /// How many records of the sampled Redis keys it stands for. Less than 1 if it has more Redis
    /// keys than were sampled, because each of them could have been drawn.
    pub(crate) weight: f64,
    pub(crate) is_lock: bool,
}

/// The rate at which the results of one schema arrive, per second, from the lowest to the highest
/// estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ArrivalRate {
    pub(super) low: f64,
    pub(super) high: f64,
    /// How long a result lasts, in milliseconds: its TTL.
    pub(super) lasts_ms: u64,
    /// The age of the youngest eighth of the results, in milliseconds. A rise within a shorter time
    /// may not show.
    pub(super) youngest_ms: u64,
}

/// The records of one schema that keep arriving.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inflow {
    pub(super) rate: ArrivalRate,
    /// Memory of one result.
    pub(super) bytes: f64,
    /// How long a lock lasts at most, in milliseconds.
    pub(super) lock_ms: u64,
    /// Memory of one lock.
    pub(super) lock_bytes: f64,
}

/// The memory of a server, now and later.
#[derive(Debug, Clone, Default)]
pub(super) struct MemoryModel {
    /// What no sampled record takes.
    pub(super) other: f64,
    /// The records that exist now: how long they stay, and their memory.
    pub(super) held: Vec<(Option<u64>, f64)>,
    pub(super) inflows: Vec<Inflow>,
}

/// The lowest or the highest estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Low,
    High,
}

impl SizedRecord {
    /// Its memory with the server's tables; `None` if the server did not report it.
    pub(super) fn whole_bytes(&self) -> Option<f64> {
        Some((self.bytes? + TABLE_BYTES * self.keys) as f64)
    }
}

/// The rate of these results in the sample, if it shows one. `stated_ms` is the TTL that the
/// deployment states; without one, the longest time left counts as the TTL.
pub(super) fn arrival_rate(
    results: &[SizedRecord],
    stated_ms: Option<u64>,
) -> Result<ArrivalRate, String> {
    let mut left = Vec::new();
    for result in results {
        if let Some(left_ms) = result.left_ms {
            left.push((left_ms, result.weight));
        }
    }
    let count = left.len();
    if count < MIN_RESULTS {
        let results = if count == 1 { "result" } else { "results" };
        return Err(format!("the sample has only {count} {results} that expire"));
    }
    let longest = left.iter().map(|(left, _)| *left).max().unwrap_or(0);
    let lasts_ms = stated_ms.unwrap_or(0).max(longest);
    let mut ages: Vec<(u64, f64)> = Vec::with_capacity(count);
    for (left, weight) in left {
        ages.push((lasts_ms - left, weight));
    }
    let oldest = ages.iter().map(|(age, _)| *age).max().unwrap_or(0);
    let youngest = ages.iter().map(|(age, _)| *age).min().unwrap_or(0);
    if oldest - youngest < lasts_ms / MIN_SPAN || oldest < 1_000 {
        return Err("the results in the sample came at about the same time".to_owned());
    }
    let half = oldest / 2;
    // A burst is in one of the halves, and makes the range wide. A rate that rose lately shows in
    // the youngest results.
    ages.sort_by_key(|(age, _)| *age);
    let age_of = |position: usize| ages.get(position).map_or(oldest, |(age, _)| *age);
    let youngest_ms = age_of((count / 8).max(9));
    let estimates = [
        rate_between(&ages, 0, oldest),
        rate_between(&ages, 0, half),
        rate_between(&ages, half + 1, oldest),
        rate_between(&ages, youngest, age_of(count / 2)),
        rate_between(&ages, youngest, youngest_ms),
    ];
    let mut rate = ArrivalRate { low: f64::INFINITY, high: 0.0, lasts_ms, youngest_ms };
    for (low, high) in estimates {
        rate.low = rate.low.min(low);
        rate.high = rate.high.max(high);
    }
    Ok(rate)
}

/// The arrivals per second among these ages in milliseconds, with twice the error of counting.
fn rate_between(ages: &[(u64, f64)], from: u64, to: u64) -> (f64, f64) {
    let mut count = 0.0;
    let mut weight = 0.0;
    for (age, of) in ages {
        if (from..=to).contains(age) {
            count += 1.0;
            weight += of;
        }
    }
    let seconds = (to.saturating_sub(from)).max(1_000) as f64 / 1_000.0;
    if count == 0.0 {
        return (0.0, 0.0);
    }
    let rate = weight / seconds;
    let error = 2.0 / f64::sqrt(count);
    (rate * (1.0 - error).max(0.0), rate * (1.0 + error))
}

impl ArrivalRate {
    fn of(self, bound: Bound) -> f64 {
        match bound {
            Bound::Low => self.low,
            Bound::High => self.high,
        }
    }
}

impl Inflow {
    /// The memory of what arrives within this time and still exists at its end:
    /// rate x TTL x bytes, for results and for locks.
    fn bytes_after(&self, millis: u64, bound: Bound) -> f64 {
        let seconds = |lasts: u64| millis.min(lasts) as f64 / 1_000.0;
        let rate = self.rate.of(bound);
        rate * (seconds(self.rate.lasts_ms) * self.bytes + seconds(self.lock_ms) * self.lock_bytes)
    }
}

impl MemoryModel {
    /// The memory after this time.
    pub(super) fn bytes_after(&self, millis: u64, bound: Bound) -> f64 {
        let mut bytes = self.other;
        for (left, of_record) in &self.held {
            if left.is_none_or(|left| left > millis) {
                bytes += of_record;
            }
        }
        for inflow in &self.inflows {
            bytes += inflow.bytes_after(millis, bound);
        }
        bytes
    }

    /// The most memory until as many results expire as arrive.
    pub(super) fn peak(&self, bound: Bound) -> f64 {
        let mut peak = 0.0;
        for millis in self.points() {
            peak = f64::max(peak, self.bytes_after(millis, bound));
        }
        peak
    }

    /// The time after which the memory reaches the limit; `None` if it never does.
    pub(super) fn full_after(&self, limit: u64, bound: Bound) -> Option<u64> {
        self.points().into_iter().find(|millis| self.bytes_after(*millis, bound) >= limit as f64)
    }

    fn points(&self) -> Vec<u64> {
        let longest = self.inflows.iter().map(|inflow| inflow.rate.lasts_ms).max().unwrap_or(0);
        let mut points = Vec::new();
        for point in 0..=POINTS {
            let millis = u128::from(longest) * u128::from(point) / u128::from(POINTS);
            points.push(u64::try_from(millis).unwrap_or(0));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;
    const GIB: f64 = (1_u64 << 30) as f64;

    fn results(left: impl IntoIterator<Item = u64>) -> Vec<SizedRecord> {
        let result = |left_ms| SizedRecord {
            left_ms: Some(left_ms),
            bytes: Some(488),
            keys: 1,
            weight: 1.0,
            is_lock: false,
        };
        left.into_iter().map(result).collect()
    }

    fn steady(per_second: f64, bytes: f64) -> Inflow {
        let rate = ArrivalRate { low: per_second, high: per_second, lasts_ms: DAY, youngest_ms: 0 };
        Inflow { rate, bytes, lock_ms: 30_000, lock_bytes: 76.0 }
    }

    /// The memory model of the authors of event-driven: 1,000/s, locks of 30 s with a key of 40 and
    /// an id of 36 bytes, results of 24 h with a key of 40 and a response of 512 bytes.
    #[test]
    fn the_sizing_formula_of_a_service_is_met() {
        let model = MemoryModel { inflows: vec![steady(1_000.0, 552.0)], ..MemoryModel::default() };
        let locks = 1_000.0 * 30.0 * 76.0;
        assert_eq!(locks, 2_280_000.0);
        let whole = model.bytes_after(DAY, Bound::Low);
        assert_eq!(whole, locks + 1_000.0 * 86_400.0 * 552.0);
        assert!((44.4..44.5).contains(&(whole / GIB)), "{}", whole / GIB);
        assert_eq!(model.peak(Bound::High), whole);
        // After 30 s, there are as many locks as ever.
        assert_eq!(model.bytes_after(30_000, Bound::Low), locks + 1_000.0 * 30.0 * 552.0);
    }

    #[test]
    fn memory_is_full_when_what_arrives_fills_it() {
        let mut model =
            MemoryModel { inflows: vec![steady(120.0, 974.0)], ..MemoryModel::default() };
        assert!((9.3..9.5).contains(&(model.peak(Bound::Low) / GIB)));
        let limit = 8 << 30;
        let after = model.full_after(limit, Bound::Low).unwrap();
        assert!((20 * HOUR..21 * HOUR).contains(&after), "{after}");
        // Other data takes part of it, and records that expire give theirs back.
        model.other = 1.0 * GIB;
        assert!(model.full_after(limit, Bound::Low).unwrap() < after - 2 * HOUR);
        model.other = 0.0;
        model.held = vec![(Some(HOUR), 2.0 * GIB)];
        assert_eq!(model.full_after(limit, Bound::Low), Some(after));
        model.held = vec![(None, 2.0 * GIB)];
        assert!(model.full_after(limit, Bound::Low).unwrap() < after - 4 * HOUR);
        model.held = vec![(None, 8.0 * GIB)];
        assert_eq!(model.full_after(limit, Bound::Low), Some(0), "it is full now");
    }

    #[test]
    fn results_that_come_steadily_show_their_rate() {
        // One every minute, in 24 h.
        let even = results((1..1_440).map(|minute| minute * 60_000));
        for stated in [None, Some(DAY)] {
            let rate = arrival_rate(&even, stated).unwrap();
            let per_minute = 1.0 / 60.0;
            assert!(rate.low < per_minute && rate.low > per_minute * 0.8, "{rate:?}");
            assert!(rate.high > per_minute && rate.high < per_minute * 1.2, "{rate:?}");
        }
        // The service began an hour ago, so that the oldest result has 23 h left.
        let young = results((0..60).map(|minute| DAY - minute * 60_000));
        let rate = arrival_rate(&young, Some(DAY)).unwrap();
        assert!(rate.low > 0.005 && rate.high < 0.035, "{rate:?}");
    }

    #[test]
    fn few_results_or_one_load_show_no_rate() {
        assert!(arrival_rate(&results((1..20).map(|hour| hour * HOUR)), None).is_err());
        assert!(arrival_rate(&results((1..21).map(|hour| hour * HOUR)), None).is_ok());
        let loaded = results((0..500).map(|number| DAY - number));
        assert!(arrival_rate(&loaded, None).unwrap_err().contains("at about the same time"));
        assert!(arrival_rate(&loaded, Some(2 * DAY)).is_err());
    }

    /// Rule: what came in the last minutes counts, even if the day was quiet.
    #[test]
    fn a_rate_that_rose_lately_is_in_the_range() {
        let quiet = (0..50).map(|number| number * DAY / 50);
        let busy = (0..450).map(|number| DAY - number * 1_000);
        let rate = arrival_rate(&results(quiet.chain(busy)), Some(DAY)).unwrap();
        assert!(rate.high > 1.0, "{rate:?}");
        assert!(rate.low < 0.01, "{rate:?}");
    }

    /// Rule: a burst widens the range, and its lower end stays low.
    #[test]
    fn a_burst_is_no_lasting_rate() {
        let trickle = (1..24).map(|hour| hour * HOUR);
        let rate = arrival_rate(&results(trickle.chain((0..400).map(|n| 20 * HOUR + n))), None);
        let rate = rate.unwrap();
        assert!(rate.low < 1.0 / 3_600.0, "{rate:?}");
        assert!(rate.high > 0.004, "{rate:?}");
    }
}

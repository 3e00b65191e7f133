//! Whether the memory suffices for the records that keep arriving.

use super::eviction_policy::{evicts, maxmemory};
use super::memory_headroom::{self, shown, when_full};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, LookCount, NodeFacts, ObservedRun};
use crate::domain::doctor::info::part_of;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::doctor::sample::{RecordSample, SchemaSample};
use crate::domain::doctor::sizing::{
    ArrivalRate, Bound, Inflow, MemoryModel, SizedRecord, arrival_rate,
};
use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "capacity",
    group: CheckGroup::Capacity,
    title: "the memory that the records need, against maxmemory",
    reads: "up to 500 random keys: times left and MEMORY USAGE; INFO of each master (used_memory, \
            mem_not_counted_for_evict, maxmemory, total_system_memory, keys), with --observe also at \
            the end",
    rule: "Needed are new results/s x TTL x bytes, the same for locks, and the other data. The sample \
           shows the rate by the ages of 20 results or more, as a range. An error if memory is full \
           now; a warning if the low end of the range reaches the limit, or other data took 1 % of it \
           during --observe and fills it; a note if only the high end does, if 90 % are reached, if \
           other data may grow, or if maxmemory is 0, in which case the memory of the host is the \
           limit. --verbose shows the inputs.",
    source: "docs/doctor.md (how much memory), https://redis.io/topics/lru-cache",
    consequence: memory_headroom::CHECK.consequence,
    remedy: memory_headroom::CHECK.remedy,
    judge,
};

/// The part of the limit, in percent, from which there is little room.
const TIGHT: f64 = 90.0;

/// The part of the limit, in percent, from which other data matters.
const MUCH: f64 = 10.0;

/// The part of the limit, in percent, from which growth during the run is an alarm.
const FAST: u64 = 1;

/// A schema with at most this part (one in so many) of the sampled records is rare.
const MUCH_PARTS: usize = 10;

/// How often new locks must be expected in the samples of a run, if their absence is to show that
/// new keys are results. With 3, they are missed in 5 % of runs.
const MIN_SEEN: f64 = 3.0;

/// What has grown evenly since the begin of a run, against its mean in the second half, which is
/// its size at three quarters of the run.
const GROWTH: f64 = 4.0 / 3.0;

/// Growth of used_memory that needs no explanation: buffers of clients come and go.
const NOISE_BYTES: u64 = 1 << 20;

/// A server's memory.
struct NodeMemory {
    /// What counts against maxmemory.
    used: u64,
    /// The part of it that is not the server's own.
    data: u64,
    /// 0 for none.
    limit: u64,
    /// Memory of the host; `None` if the server does not report it.
    host: Option<u64>,
    /// Redis keys in the database.
    keys: u64,
}

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    // Without records, there is nothing to size.
    if sample.schemas.iter().all(|of| of.sized.is_empty()) {
        return match sample.unread_because() {
            Some(unread) => vec![CheckJudgement::unknown(unread)],
            None => Vec::new(),
        };
    }
    of_each_node(facts, |node| judge_node(facts, sample, node))
}

fn judge_node(
    facts: &DeploymentFacts,
    sample: &RecordSample,
    node: &NodeFacts,
) -> FactResult<CheckJudgement> {
    let memory = memory_of(node, sample.db)?;
    if memory.limit > 0 && memory.used >= memory.limit {
        let limit = shown(memory.limit);
        return Ok(CheckJudgement::error(format!("memory is full now: maxmemory is {limit}"))
            .with_consequence(when_full(node)));
    }
    if let Some(Ok(run)) = facts.observed()
        && let (Ok(before), Ok(after)) =
            (node.number("evicted_keys"), node.number_after(run, "evicted_keys"))
        && after > before
    {
        let fact = "memory is full now: keys were evicted during this run";
        return Ok(CheckJudgement::error(fact).with_consequence(when_full(node)));
    }
    if let Some(unread) = sample.unread_because() {
        return Err(unread);
    }
    let growth = match facts.observed() {
        Some(Ok(run)) => Some(Growth::of(node, run, &memory, sample.db)?),
        Some(Err(refusal)) => return Err(refusal),
        None => None,
    };
    let needed = match needed(sample, &memory, growth.as_ref()) {
        Ok(needed) => needed,
        // A right that is missing can be given. More results cannot.
        Err(refusal) if memory.limit == 0 && refusal.rule.is_none() => {
            return Ok(without_limit(&refusal.why));
        }
        Err(refusal) => return Err(refusal),
    };
    Ok(judge_needed(node, sample, &memory, &needed, growth.as_ref()))
}

fn memory_of(node: &NodeFacts, db: i64) -> FactResult<NodeMemory> {
    let not_counted = node.number("mem_not_counted_for_evict").unwrap_or(0);
    let used = node.number("used_memory")?;
    let own = node.number("used_memory_startup").unwrap_or(0);
    Ok(NodeMemory {
        data: used.saturating_sub(own),
        used: used.saturating_sub(not_counted),
        limit: maxmemory(node)?,
        host: node.number("total_system_memory").ok().filter(|bytes| *bytes > 0),
        keys: keys_in(node.info(&format!("db{db}")).ok()),
    })
}

/// The number in `keys=12,expires=3`; 0 for an empty database, which INFO leaves out.
fn keys_in(keyspace: Option<&str>) -> u64 {
    let keys = keyspace.and_then(|list| part_of(list, "keys"));
    keys.and_then(|keys| keys.parse().ok()).unwrap_or(0)
}

/// What the records of the sample need on a server.
struct Needed {
    model: MemoryModel,
    /// New results per second, at least and at most.
    per_second: (f64, f64),
    /// The longest TTL.
    lasts_ms: u64,
    /// The time before the sample within which a higher rate may not show.
    youngest_ms: u64,
    /// Memory of the records that exist now.
    records: f64,
    has_endless: bool,
    inputs: Vec<String>,
}

fn needed(
    sample: &RecordSample,
    memory: &NodeMemory,
    growth: Option<&Growth>,
) -> FactResult<Needed> {
    if memory.keys == 0 {
        return Err(not_shown("the server reports no number of keys"));
    }
    // Each sampled key stands for so many keys of the server.
    let scale = memory.keys as f64 / sample.keys.max(1) as f64;
    let mut needed = Needed {
        model: MemoryModel::default(),
        per_second: (0.0, 0.0),
        lasts_ms: 0,
        youngest_ms: 0,
        records: 0.0,
        has_endless: false,
        inputs: Vec::new(),
    };
    // The keys that arrived during the run are records if the sample has nothing else.
    let is_alone = sample.keys == sample.keys_of_records;
    let arrived = growth.filter(|_| is_alone).map(|run| run.per_second(sample, memory, scale));
    let with_results =
        sample.schemas.iter().filter(|of| of.sized.iter().any(|record| !record.is_lock)).count();
    let all = sample.schemas.iter().map(|of| of.sized.len()).sum();
    for of in &sample.schemas {
        add_schema(&mut needed, of, scale, all, arrived.filter(|_| with_results == 1))?;
    }
    if needed.model.inflows.is_empty() && !needed.has_endless {
        return Err(not_shown("the sample has no result"));
    }
    if let Some(growth) = growth.filter(|_| is_alone) {
        needed.count(growth.more_keys(memory), growth.lasted_ms);
    }
    if let Some(measured) = arrived {
        needed.correct(measured);
    }
    needed.fit(memory.data as f64);
    needed.model.other = (memory.used as f64 - needed.records).max(0.0);
    Ok(needed)
}

/// Adds what the records of a schema need. `all` is the number of sampled records; `arrived` is the
/// number of results that arrived per second
/// during the run, at least and at most, if they are all of this schema.
fn add_schema(
    needed: &mut Needed,
    of: &SchemaSample,
    scale: f64,
    all: usize,
    arrived: Option<(f64, f64)>,
) -> FactResult<()> {
    for record in &of.sized {
        let bytes = record.whole_bytes().ok_or_else(no_memory_usage)? * record.weight * scale;
        needed.records += bytes;
        needed.model.held.push((record.left_ms, bytes));
    }
    let (locks, results): (Vec<SizedRecord>, Vec<SizedRecord>) =
        of.sized.iter().partition(|record| record.is_lock);
    if results.is_empty() {
        return Ok(());
    }
    needed.has_endless |= results.iter().any(|result| result.left_ms.is_none());
    let stated = |ttl: TtlOf| of.schema.ttl(ttl).filter(|_| of.schema.states_ttl(ttl)).map(millis);
    let stated_ms = stated(TtlOf::Result);
    if results.iter().all(|result| result.left_ms.is_none()) {
        return Ok(());
    }
    let rate = match arrival_rate(&results, stated_ms) {
        Ok(in_sample) => {
            ArrivalRate { low: in_sample.low * scale, high: in_sample.high * scale, ..in_sample }
        }
        Err(why) => match (stated_ms, arrived) {
            (Some(lasts_ms), Some((low, high))) if low > 0.0 => {
                ArrivalRate { low, high, lasts_ms, youngest_ms: 0 }
            }
            // A few records beside many others do not decide.
            _ if of.sized.len() * MUCH_PARTS <= all => rare_rate(&results, stated_ms, scale),
            _ => {
                let name = &of.schema.name;
                return Err(not_shown(&format!(
                    "the rate of new results of {name} is unknown: {why}"
                )));
            }
        },
    };
    let longest_lock = locks.iter().filter_map(|lock| lock.left_ms).max().unwrap_or(0);
    let inflow = Inflow {
        rate,
        bytes: mean_bytes(&results),
        lock_ms: stated(TtlOf::Lock).unwrap_or(longest_lock),
        lock_bytes: mean_bytes(&locks),
    };
    needed.per_second.0 += rate.low;
    needed.per_second.1 += rate.high;
    needed.lasts_ms = needed.lasts_ms.max(rate.lasts_ms);
    needed.youngest_ms = needed.youngest_ms.max(rate.youngest_ms);
    let ttl = if stated(TtlOf::Result).is_some() { "stated" } else { "longest seen" };
    needed.inputs.push(format!(
        "{}: {} x {} ({ttl}) x {:.0} bytes, by {} sampled results; locks x {} x {:.0} bytes",
        of.schema.name,
        arrivals(rate.low, rate.high),
        duration::short(rate.lasts_ms),
        inflow.bytes,
        results.len(),
        duration::short(inflow.lock_ms),
        inflow.lock_bytes,
    ));
    needed.model.inflows.push(inflow);
    Ok(())
}

/// The rate of a few results: at most twice as many as there are, with twice the error of counting.
fn rare_rate(results: &[SizedRecord], stated_ms: Option<u64>, scale: f64) -> ArrivalRate {
    let longest = results.iter().filter_map(|result| result.left_ms).max().unwrap_or(0);
    let lasts_ms = stated_ms.unwrap_or(0).max(longest).max(1_000);
    let count = results.len() as f64;
    let most = 2.0 * (count + 2.0 * (count + 1.0).sqrt()) * scale;
    let high = most * 1_000.0 / lasts_ms as f64;
    ArrivalRate { low: 0.0, high, lasts_ms, youngest_ms: lasts_ms }
}

fn mean_bytes(records: &[SizedRecord]) -> f64 {
    let mut bytes = 0.0;
    let mut weight = 0.0;
    for record in records {
        bytes += record.whole_bytes().unwrap_or(0.0) * record.weight;
        weight += record.weight;
    }
    if weight > 0.0 { bytes / weight } else { 0.0 }
}

impl Needed {
    /// Lowers the sizes if the records would take more memory than there is data: MEMORY USAGE
    /// counts too much of short values.
    fn fit(&mut self, data: f64) {
        if self.records <= data {
            return;
        }
        let part = data / self.records;
        for (_, bytes) in &mut self.model.held {
            *bytes *= part;
        }
        for inflow in &mut self.model.inflows {
            inflow.bytes *= part;
            inflow.lock_bytes *= part;
        }
        self.inputs.push(format!("sizes x {part:.2}, because {} are data", shown_f(data)));
        self.records = data;
    }

    /// Raises the range to the arrivals per second that the run measured. A quiet time does not
    /// lower it.
    fn correct(&mut self, measured: (f64, f64)) {
        let (low, high) = self.per_second;
        if measured.0 <= low {
            return;
        }
        let new_high = if measured.0 > high { measured.1 } else { high };
        for inflow in &mut self.model.inflows {
            // The schemas keep their parts of all results.
            let part = inflow.rate.high / high.max(f64::MIN_POSITIVE);
            inflow.rate.low = measured.0 * part;
            inflow.rate.high = new_high * part;
        }
        self.per_second = (measured.0, new_high);
        self.inputs
            .push(format!("raised to {}, which came in this run", arrivals(measured.0, new_high)));
    }

    /// Raises the high end to the keys that the server counted, however few of them the sample
    /// shows.
    fn count(&mut self, more_keys: f64, lasted_ms: u64) {
        let seconds = lasted_ms as f64 / 1_000.0;
        let error = 2.0 * (more_keys.max(0.0) + 1.0).sqrt();
        let (low, high) = self.per_second;
        if (more_keys - error) / seconds <= low || more_keys / seconds <= high {
            return;
        }
        let new_high = (more_keys + error) / seconds;
        for inflow in &mut self.model.inflows {
            inflow.rate.high *= new_high / high.max(f64::MIN_POSITIVE);
        }
        self.per_second.1 = new_high;
    }
}

/// What changed on a server during the run.
struct Growth<'a> {
    lasted_ms: u64,
    /// Redis keys of the database at the end.
    keys: u64,
    used: u64,
    looks: &'a [LookCount],
}

impl<'a> Growth<'a> {
    fn of(
        node: &NodeFacts,
        run: &'a ObservedRun,
        before: &NodeMemory,
        db: i64,
    ) -> FactResult<Self> {
        let after = |field: &str| node.number_after(run, field);
        let not_counted = after("mem_not_counted_for_evict").unwrap_or(0);
        let info = run.infos.get(&node.name).and_then(|info| info.as_ref().ok());
        Ok(Self {
            lasted_ms: run.lasted_ms.max(1),
            keys: keys_in(info.and_then(|info| info.field(&format!("db{db}")).ok())),
            used: after("used_memory")?.saturating_sub(not_counted).saturating_sub(before.used),
            looks: &run.looks,
        })
    }

    /// How many more keys there are than before.
    fn more_keys(&self, before: &NodeMemory) -> f64 {
        self.keys as f64 - before.keys as f64
    }

    /// The results that arrived per second, at least and at most: as many as there are more keys,
    /// and as expired meanwhile, by the deadlines in the sample. Each has twice its error of
    /// counting. The server's own counters include expired locks, and keys of other databases.
    fn per_second(&self, sample: &RecordSample, before: &NodeMemory, scale: f64) -> (f64, f64) {
        let mut count: f64 = 0.0;
        let mut expired = 0.0;
        for of in &sample.schemas {
            for record in &of.sized {
                if !record.is_lock && record.left_ms.is_some_and(|left| left <= self.lasted_ms) {
                    count += 1.0;
                    expired += record.weight * scale;
                }
            }
        }
        let more = self.more_keys(before);
        let error = 2.0 * (more.abs() + 1.0).sqrt();
        let least_expired = (expired - 2.0 * scale * count.sqrt()).max(0.0);
        let most_expired = expired + 2.0 * scale * (count + 1.0).sqrt();
        let least = more - error - self.more_locks(more) + least_expired;
        let seconds = self.lasted_ms as f64 / 1_000.0;
        let at = |results: f64| results.max(0.0) / seconds;
        (at(least), at(more + error + most_expired))
    }

    /// The most of the new keys that may belong to locks, by the states of the sampled keys in the
    /// first and in the second half of the run.
    fn more_locks(&self, more: f64) -> f64 {
        let (first, second) = self.looks.split_at(self.looks.len() / 2);
        let (keys_before, before) = LookCount::sum(first);
        let (keys_after, after) = LookCount::sum(second);
        let Some(last) = second.last().filter(|last| last.keys > 0) else { return more.max(0.0) };
        let keys = self.keys as f64;
        // New locks would have been seen, if they were many.
        let would_be_seen = more * keys_after / keys.max(1.0);
        if before + after == 0.0 && would_be_seen >= MIN_SEEN {
            return 0.0;
        }
        // If they grow evenly, there are more at the end than in the second half on average.
        let most = GROWTH * (after + 2.0 * (after + 1.0).sqrt()) * keys / keys_after;
        // They may all have been taken just before the end.
        let at_end = last.of_locks as f64;
        let at_end = (at_end + 2.0 * at_end.sqrt()) * keys / last.keys as f64;
        let least = (before - 2.0 * (before + 1.0).sqrt()).max(0.0) * keys / keys_before.max(1.0);
        (most.max(at_end) - least).max(0.0)
    }
}

/// What the records need, and the limit.
fn needs(needed: &Needed, low: f64, high: f64, has_limit: bool, limit: Option<u64>) -> String {
    let size = if shown_f(low) == shown_f(high) {
        shown_f(high)
    } else {
        format!("{} to {}", shown_f(low), shown_f(high))
    };
    let mut fact = format!(
        "{}, stored for {}, need {size}",
        arrivals(needed.per_second.0, needed.per_second.1),
        duration::short(needed.lasts_ms)
    );
    match (has_limit, limit) {
        (true, Some(limit)) => fact.push_str(&format!("; maxmemory is {}", shown(limit))),
        (_, Some(host)) => {
            fact.push_str(&format!("; without maxmemory, the limit is the host's {}", shown(host)));
        }
        (_, None) => fact.push_str("; maxmemory is 0, and the host's memory is unknown"),
    }
    fact
}

fn judge_needed(
    node: &NodeFacts,
    sample: &RecordSample,
    memory: &NodeMemory,
    needed: &Needed,
    growth: Option<&Growth>,
) -> CheckJudgement {
    if needed.model.inflows.is_empty() && needed.has_endless {
        let fact = "the sampled results never expire, so that the memory they need grows without \
                    limit";
        return CheckJudgement::note(fact)
            .with_evidence(FactEvidence::Estimated)
            .with_consequence(when_full(node))
            .with_remedy("Let the service set a TTL on results.");
    }
    let has_limit = memory.limit > 0;
    let limit = if has_limit { Some(memory.limit) } else { memory.host };
    let low = needed.model.peak(Bound::Low);
    let high = needed.model.peak(Bound::High);
    let fact = needs(needed, low, high, has_limit, limit);
    let mut inputs = needed.inputs.clone();
    inputs.push(format!(
        "other data: {}, of {} in use",
        shown_f(needed.model.other),
        shown(memory.used)
    ));
    let full = limit.and_then(|limit| needed.model.full_after(limit, Bound::Low));
    let may_be_full = limit.and_then(|limit| needed.model.full_after(limit, Bound::High));
    let percent = |bytes: f64| limit.map_or(0.0, |limit| bytes * 100.0 / limit as f64);
    let mut reasons = Vec::new();
    if needed.has_endless {
        reasons.push("results that never expire add to this without limit".to_owned());
    }
    let mut is_growth_known = false;
    let mut filling = None;
    if let Some(growth) = growth {
        is_growth_known = true;
        inputs.push(format!(
            "during {}: {} keys before, {} after, memory grew by {}",
            duration::short(growth.lasted_ms),
            memory.keys,
            growth.keys,
            shown(growth.used)
        ));
        let (sampled, of_locks) = LookCount::sum(growth.looks);
        inputs.push(format!("{of_locks} of {sampled} keys in its samples were of locks"));
        filling = unexplained(needed, growth, memory, limit);
    }
    let others = sample.keys.saturating_sub(sample.keys_of_records);
    let other_data = memory.data as f64 - needed.records;
    let has_others = others * 10 > sample.keys || percent(other_data) > MUCH;
    if has_others && !is_growth_known {
        reasons.push(format!(
            "{} are other data, which may grow (--observe shows that)",
            shown_f(other_data)
        ));
    }
    let effect = if evicts(node) { "evictions start" } else { "writes are refused" };
    let effect = if has_limit { effect } else { "the host's memory is full" };
    let judgement = if let Some(after) = full {
        let time = between(may_be_full, after);
        CheckJudgement::warning(format!("{fact}: {effect} {time}"))
    } else if let Some(filling) = filling {
        let fact = format!("{fact}; {}", filling.fact);
        let found = if filling.is_fast {
            CheckJudgement::warning(fact)
        } else {
            CheckJudgement::note(fact)
        };
        found.with_remedy(
            "Find out which data grows, and move it to another server, or raise maxmemory.",
        )
    } else if let Some(after) = may_be_full {
        let earliest = about(after);
        CheckJudgement::note(format!(
            "{fact}: {effect} {earliest} at the earliest, and never at the low end"
        ))
    } else if percent(high) >= TIGHT {
        CheckJudgement::note(format!("{fact}, of which more than 90 % may be used"))
    } else if !reasons.is_empty() {
        CheckJudgement::note(format!("{fact}; {}", reasons.join("; ")))
    } else if !has_limit {
        return without_limit_fact(fact)
            .with_evidence(FactEvidence::Estimated)
            .with_inputs(inputs.join("; "));
    } else if growth.is_some() {
        CheckJudgement::ok(fact)
    } else {
        // The sample has too few results of so short a time.
        let recent = duration::short(needed.youngest_ms);
        CheckJudgement::ok(format!(
            "{fact} (a rise of the traffic in the last {recent} may not show yet)"
        ))
    };
    judgement
        .with_evidence(FactEvidence::Estimated)
        .with_consequence(when_full(node))
        .with_inputs(inputs.join("; "))
}

/// Growth during the run that the records do not explain.
struct Filling {
    fact: String,
    /// True if it took a part of the limit that is an alarm.
    is_fast: bool,
}

/// The growth that fills the memory before the results reach their number; `None` if the records
/// explain it, or it takes longer.
fn unexplained(
    needed: &Needed,
    growth: &Growth,
    memory: &NodeMemory,
    limit: Option<u64>,
) -> Option<Filling> {
    let limit = limit?;
    let expected = needed.model.bytes_after(growth.lasted_ms, Bound::High)
        - needed.model.bytes_after(0, Bound::High);
    if growth.used as f64 <= expected.max(0.0) + NOISE_BYTES as f64 {
        return None;
    }
    let room = limit.saturating_sub(memory.used.saturating_add(growth.used));
    let after = u128::from(room) * u128::from(growth.lasted_ms) / u128::from(growth.used.max(1));
    let after = u64::try_from(after).unwrap_or(u64::MAX);
    if after > needed.lasts_ms {
        return None;
    }
    let fact = format!(
        "memory grew by {} in {}, more than these results explain: at this rate it is full in about {}",
        shown(growth.used),
        duration::short(growth.lasted_ms),
        duration::short(after)
    );
    Some(Filling { fact, is_fast: growth.used >= limit / 100 * FAST })
}

fn without_limit(why: &str) -> CheckJudgement {
    without_limit_fact(format!("maxmemory is 0, and {why}")).with_evidence(FactEvidence::Estimated)
}

fn without_limit_fact(fact: String) -> CheckJudgement {
    CheckJudgement::note(fact)
        .with_consequence(memory_headroom::WITHOUT_LIMIT)
        .with_remedy(memory_headroom::SET_LIMIT)
}

/// When the memory is full, from the earliest time to the latest, in milliseconds.
fn between(earliest: Option<u64>, latest: u64) -> String {
    match earliest.filter(|earliest| *earliest > 0 && *earliest < latest) {
        Some(earliest) => format!("{} to {}", about(earliest), duration::short(latest)),
        None => about(latest),
    }
}

fn about(after_ms: u64) -> String {
    if after_ms == 0 { "now".to_owned() } else { format!("in about {}", duration::short(after_ms)) }
}

/// `120 new results/s`, or `110 to 130 new results/s` if the estimates differ. Few are counted by the
/// minute, hour or day.
fn arrivals(low: f64, high: f64) -> String {
    let mut unit = "s";
    let mut seconds = 1.0;
    for (longer, of_longer) in [("min", 60.0), ("h", 3_600.0), ("d", 86_400.0)] {
        if high * seconds < 0.1 {
            unit = longer;
            seconds = of_longer;
        }
    }
    let (low, high) = (number(low * seconds), number(high * seconds));
    let range = if low == high { low } else { format!("{low} to {high}") };
    format!("{range} new results/{unit}")
}

fn number(value: f64) -> String {
    if value >= 10.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn shown_f(bytes: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes, which are not negative"
    )]
    let whole = bytes.max(0.0) as u64;
    shown(whole)
}

fn no_memory_usage() -> RefusedFact {
    RefusedFact {
        command: "MEMORY USAGE".to_owned(),
        rule: Some("+memory|usage +eval".to_owned()),
        why: "the memory of the sampled records is unknown".to_owned(),
        instead: None,
    }
}

fn not_shown(why: &str) -> RefusedFact {
    RefusedFact {
        command: "the sample".to_owned(),
        rule: None,
        why: why.to_owned(),
        instead: Some(
            "Run doctor again when there are more results, and state the TTLs: `idemctl context set \
             NAME --result-ttl SCHEMA=DURATION`."
                .to_owned(),
        ),
    }
}

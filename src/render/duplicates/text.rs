//! Groups of duplicates for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::domain::duplicates::{
    ComparedName, ComparedRecord, DuplicateGroup, NotCompared, RecordTime, ResultCounts, TimeIs,
    UnknownBecause, UnknownRecords,
};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::render::columns::rfc3339;
use crate::render::duplicates::DuplicatesReport;
use crate::render::style::View;
use crate::render::{escape, table, words};

/// The most pointers that are listed.
const MAX_POINTERS: usize = 20;

/// The groups, each below a line that says what agrees; or the pointers that could be compared.
/// `is_complete` is false if more groups may exist.
pub(crate) fn groups(report: &DuplicatesReport<'_>, is_complete: bool, view: View) -> String {
    if let Some(tally) = report.candidates {
        let mut lines = String::new();
        for count in tally.counts().into_iter().take(MAX_POINTERS) {
            let about = if count.is_estimate { "~" } else { "" };
            let (values, repeated) = (words::count(count.values), words::count(count.repeated));
            let pointer = escape::text(count.pointer.as_bytes());
            let noun = if count.values == 1 { "value" } else { "values" };
            lines.push_str(&format!(
                "{pointer}: {about}{values} {noun}, {about}{repeated} with several keys\n"
            ));
        }
        return lines;
    }
    if report.grouped.groups.is_empty() {
        return format!("{}\n", no_groups(report, is_complete));
    }
    let mut text = String::new();
    for group in &report.grouped.groups {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&heading(report, group, view));
        text.push('\n');
        text.push_str(&members(report, group, view));
    }
    text
}

/// The line above the records of a group.
fn heading(report: &DuplicatesReport<'_>, group: &DuplicateGroup, view: View) -> String {
    let mut parts = Vec::new();
    for (name, value) in report.names(group).iter().zip(&group.values) {
        // A canonical text is JSON, whose texts have quotes.
        parts.push(format!("{} {}", escape::text(name.as_bytes()), escape::text(value.as_bytes())));
    }
    for (name, value) in report.rule.further_names().iter().zip(&group.further) {
        parts.push(format!("{name} {}", escape::text(value)));
    }
    let strength = if group.basis.is_strong() { "" } else { "weak evidence, " };
    let counts = report.grouped.counts(group);
    let mut after = format!(": {strength}{}", outcomes(counts));
    if !group.basis.is_strong() && report.grouped.values_differ(&group.members) {
        let pointers = report.rule.pointers.join(", ");
        after.push_str(&format!("; {} differs", escape::text(pointers.as_bytes())));
    }
    match report.grouped.time_evidence(group) {
        Some(Evidence::Estimated) => after.push_str("; has estimated times"),
        Some(Evidence::Stated) if report.within_ms.is_some() => {
            after.push_str("; rests on a stated TTL");
        }
        _ => {}
    }
    let what = parts.join(", ");
    let Some(width) = view.width else { return format!("{what}{after}") };
    format!("{}{after}", cut(&what, width.saturating_sub(after.chars().count())))
}

/// A text in at most this many characters, and at least 20.
fn cut(text: &str, width: usize) -> String {
    let width = width.max(20);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width - 1).collect();
    short.push('…');
    short
}

/// `3 keys, 2 completed, 1 failed`.
fn outcomes(counts: ResultCounts) -> String {
    let mut text = words::counted(counts.keys as u64, "key");
    for (count, word) in [
        (counts.completed, "completed"),
        (counts.failed, "failed"),
        (counts.in_progress, "in progress"),
        (counts.unknown, "of unknown outcome"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

fn members(report: &DuplicatesReport<'_>, group: &DuplicateGroup, view: View) -> String {
    let gaps = report.grouped.gaps(group);
    let is_mixed = report.grouped.has_mixed_times(group);
    let mut rows = Vec::with_capacity(group.members.len());
    let mut before: Option<RecordTime> = None;
    for (index, gap) in group.members.iter().zip(gaps) {
        let record = &report.grouped.records[*index];
        let is_estimate =
            [before, record.time].iter().flatten().any(|time| time.evidence != Evidence::Known);
        let gap = match gap {
            Some(gap) if is_estimate || is_mixed => format!("~{}", duration::short(gap)),
            Some(gap) => duration::short(gap),
            None => "-".to_owned(),
        };
        before = record.time;
        rows.push(row(record, gap));
    }
    let heading = ["KEY", "SCHEMA", "STATE", "STATUS", "TIME", "OF", "GAP"];
    table::grid(view, 2, &heading, rows.into_iter())
}

fn row(record: &ComparedRecord, gap: String) -> Vec<String> {
    let mut cells = vec![escape::key(&record.name.key)];
    let schema = escape::text(record.name.schema.as_bytes());
    let state = record.state.map(|state| state.as_str().to_owned()).unwrap_or_default();
    let status = record.status.map(|status| status.to_string()).unwrap_or_default();
    let (mut time, mut of) = (String::new(), String::new());
    if let Some(known) = record.time
        && let Some(at) = rfc3339(known.at_ms)
    {
        // Also a stated TTL does not prove when a record was written.
        let mark = if known.evidence == Evidence::Known { "" } else { "~" };
        time = format!("{mark}{at}");
        of = match known.is {
            TimeIs::Created => "arrival".to_owned(),
            TimeIs::Completed => "result".to_owned(),
        };
    }
    for cell in [schema, state, status, time, of, gap] {
        cells.push(if cell.is_empty() { "-".to_owned() } else { cell });
    }
    cells
}

/// What was found, and what is unknown, in sentences.
pub(crate) fn summary(report: &DuplicatesReport<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let counts = report.counts;
    if report.candidates.is_some() {
        lines.push(
            "Nothing was grouped, because no record that could be read has a fingerprint. Pass \
            --same with a pointer to a value that each operation has once."
                .to_owned(),
        );
    } else if !report.grouped.groups.is_empty() {
        lines.extend(strength(report, true));
        lines.extend(strength(report, false));
        lines.extend(gap_line(report));
        lines.extend(causes(report));
        lines.push(format!("{}.", compared(report)));
    }
    for (why, count) in &counts.not_compared {
        lines.push(not_compared(report, *why, *count));
    }
    for (why, unknown) in &counts.unknown {
        lines.push(unknown_line(*why, unknown));
    }
    if has_estimated_times(report) {
        lines.push(
            "An estimated time rests on a schema's default TTL. If all records have one TTL, state \
            it with --schema and --result-ttl or --lock-ttl; otherwise leave out --within."
                .to_owned(),
        );
    }
    if counts.compared_nothing() && report.candidates.is_none() {
        let nothing = if !report.grouped.groups.is_empty() {
            "--same compared no record, so it is unknown whether there are more duplicates."
        } else if counts.records == 0 {
            "There was no record to compare, so it is unknown whether there are duplicates."
        } else {
            "No record could be compared, so it is unknown whether there are duplicates."
        };
        lines.push(nothing.to_owned());
    }
    if counts.compared_nothing() && counts.not_compared.contains_key(&NotCompared::Value) {
        lines.push(format!(
            "No {} has a value at {}. Without --same, this command lists the pointers of \
            the responses, if no record has a fingerprint.",
            if report.rule.reads_values() { "record" } else { "response" },
            pointers(report)
        ));
    }
    lines
}

/// True if a record is in no group because its time is only estimated.
fn has_estimated_times(report: &DuplicatesReport<'_>) -> bool {
    let grouped = report.grouped;
    grouped.time_unknown.iter().any(|index| grouped.records[*index].time.is_some())
}

/// The line in place of groups.
fn no_groups(report: &DuplicatesReport<'_>, is_complete: bool) -> String {
    if report.counts.compared_nothing() {
        return format!("Nothing was compared: {}.", compared(report));
    }
    let so_far = if is_complete { "" } else { " among what could be compared" };
    format!("No groups{so_far}: {}.", compared(report))
}

/// `7 records have values at /order/id`.
fn compared(report: &DuplicatesReport<'_>) -> String {
    let records = words::counted(report.counts.compared, "record");
    let have = if report.counts.compared == 1 { "has" } else { "have" };
    if report.rule.pointers.is_empty() {
        format!("{records} {have} what is compared")
    } else {
        format!("{records} {have} values at {}", pointers(report))
    }
}

fn pointers(report: &DuplicatesReport<'_>) -> String {
    escape::text(report.rule.pointers.join(" and ").as_bytes())
}

/// How many groups of strong or of weak evidence have how many completed results.
fn strength(report: &DuplicatesReport<'_>, is_strong: bool) -> Option<String> {
    // By the number of completed results, the largest first, and whether some outcomes are unknown.
    let mut by_results: BTreeMap<(Reverse<usize>, bool), u64> = BTreeMap::new();
    let mut total = 0;
    for group in &report.grouped.groups {
        if group.basis.is_strong() == is_strong {
            let counts = report.grouped.counts(group);
            let results = (Reverse(counts.completed), counts.unknown > 0);
            *by_results.entry(results).or_default() += 1;
            total += 1;
        }
    }
    if total == 0 {
        return None;
    }
    let mut parts = Vec::new();
    for ((Reverse(completed), has_unknown), groups) in by_results {
        let has = if groups == 1 { "has" } else { "have" };
        let results = match (completed, has_unknown) {
            (0, false) => "no completed result".to_owned(),
            (0, true) => "unknown outcomes".to_owned(),
            (1, false) => "only one completed result".to_owned(),
            (1, true) => "one completed result and unknown outcomes".to_owned(),
            (count, false) => format!("{count} completed results"),
            (count, true) => format!("{count} completed results and unknown outcomes"),
        };
        parts.push(format!("{} {has} {results}", words::count(groups)));
    }
    let evidence = if is_strong {
        "strong evidence"
    } else {
        "weak evidence, because honest requests may have equal payloads"
    };
    Some(format!("{} ({evidence}): {}.", words::counted(total, "group"), parts.join(", ")))
}

/// The gaps within groups of strong evidence.
fn gap_line(report: &DuplicatesReport<'_>) -> Option<String> {
    let mut shortest: Option<u64> = None;
    let mut longest = 0;
    let mut is_estimate = false;
    for group in &report.grouped.groups {
        if !group.basis.is_strong() {
            continue;
        }
        for gap in report.grouped.gaps(group).into_iter().flatten() {
            shortest = Some(shortest.map_or(gap, |known| known.min(gap)));
            longest = longest.max(gap);
        }
        is_estimate |= report.grouped.has_mixed_times(group)
            || report.grouped.time_evidence(group).is_some_and(|time| time != Evidence::Known);
    }
    let shortest = shortest?;
    let about = if is_estimate { "about " } else { "" };
    let (shortest, longest) = (duration::short(shortest), duration::short(longest));
    let range = if shortest == longest { shortest } else { format!("{shortest} to {longest}") };
    Some(format!("Time between two records of a group of strong evidence: {about}{range}."))
}

/// Probable causes, with their reasons. Only the keys can show them.
fn causes(report: &DuplicatesReport<'_>) -> Vec<String> {
    let (mut of_stem, mut of_uuids) = (0, 0);
    for group in &report.grouped.groups {
        if !group.basis.is_strong() {
            continue;
        }
        if report.grouped.common_stem(group).is_some() {
            of_stem += 1;
        } else if report.grouped.has_uuids(group) {
            of_uuids += 1;
        }
    }
    let mut causes = Vec::new();
    for (count, because) in [
        (of_stem, "the keys differ only in the number, timestamp or UUID at their end"),
        (of_uuids, "each key is a UUID of its own"),
    ] {
        if count > 0 {
            let groups = words::counted(count, "group");
            causes.push(format!(
                "Probable cause in {groups}: the client makes a new key for each attempt, because \
                {because}."
            ));
        }
    }
    causes
}

fn not_compared(report: &DuplicatesReport<'_>, why: NotCompared, count: u64) -> String {
    let records = words::counted(count, "record");
    let is_one = count == 1;
    let has = if is_one { "has" } else { "have" };
    let what = match why {
        NotCompared::Response => "no stored response",
        NotCompared::Value => "no value at a --same pointer",
        NotCompared::Fingerprint => "no fingerprint",
        NotCompared::Owner => "no owner",
        NotCompared::Stem => "no counter, timestamp or UUID at the end of the key",
    };
    // A record without values may be in a group by its fingerprint.
    let is_of_pointers = matches!(why, NotCompared::Response | NotCompared::Value);
    let so = if is_of_pointers && !report.rule.pointers.is_empty() {
        format!("so --same does not compare {}", it(is_one))
    } else if is_one {
        "so it was not compared".to_owned()
    } else {
        "so they were not compared".to_owned()
    };
    format!("{records} {has} {what}, {so}.")
}

fn unknown_line(why: UnknownBecause, unknown: &UnknownRecords) -> String {
    let records = words::counted(unknown.count, "record");
    let is_one = unknown.count == 1;
    let names: Vec<_> = unknown.names.iter().map(shown).collect();
    let more = unknown.count - names.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (is, has, was) = if is_one { ("is", "has", "was") } else { ("are", "have", "were") };
    let what = match why {
        UnknownBecause::Unreadable => format!("{has} a value that cannot be decoded"),
        UnknownBecause::TooLarge => {
            format!("{is} too large to be read completely (more than 16 MiB)")
        }
        UnknownBecause::NotJson => {
            format!("{has} a response that is not JSON, or is nested too deeply")
        }
        UnknownBecause::NotDecoded => {
            format!("{has} a response that idemctl does not decode, or that is stored elsewhere")
        }
        UnknownBecause::TenantPart => {
            format!("{has} no such part of the key as --tenant-part names")
        }
        UnknownBecause::Time => {
            let agrees = if is_one { "agrees" } else { "agree" };
            format!(
                "{agrees} with another one, and {has} an unknown or only estimated time, which is \
                not enough for --within"
            )
        }
        UnknownBecause::Changed => format!("changed after the scan read {}", it(is_one)),
        UnknownBecause::Gone => format!(
            "{was} gone, or no longer of the schema, when idemctl read {} again",
            it(is_one)
        ),
        UnknownBecause::NotReread => "could not be read completely or again".to_owned(),
    };
    format!("Unknown: {records} {what}: {}{more}.", names.join(", "))
}

fn it(is_one: bool) -> &'static str {
    if is_one { "it" } else { "them" }
}

fn shown(name: &ComparedName) -> String {
    let key = escape::key(&name.key);
    if name.schema.is_empty() {
        return key;
    }
    format!("{}/{key}", escape::text(name.schema.as_bytes()))
}

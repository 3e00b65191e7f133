//! Statistics on records in Prometheus's text format, for the textfile collector of node_exporter.
//!
//! The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>. Names include their
//! base units, as `promtool check metrics` requires.

use crate::domain::diagnosis::FindingCode;
use crate::domain::stats::{Stats, StatsGroup, StatsRow};
use crate::render::escape;

/// A value of a row; `None` if the row does not have it.
type Figure = fn(&StatsRow) -> Option<String>;

/// The gauges with one sample per row that has the value: name, help and value.
const GAUGES: [(&str, &str, Figure); 5] = [
    ("idemctl_records", "Number of idempotency records.", |row| Some(row.records.to_string())),
    ("idemctl_records_without_expiry", "Records that never expire.", |row| {
        Some(row.no_expiry.to_string())
    }),
    ("idemctl_value_bytes", "Size of all values.", |row| Some(row.bytes.to_string())),
    ("idemctl_memory_bytes", "Estimated memory.", |row| Some(row.memory_bytes()?.to_string())),
    ("idemctl_oldest_age_seconds", "Oldest age.", |row| Some(seconds(row.oldest?.millis))),
];

/// The run that produced the statistics.
pub struct Run<'a> {
    /// The server's address, without a password.
    pub server: &'a str,
    /// The context's name; empty if there is none.
    pub context: &'a str,
    /// The time of the run, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Run<'_> {
    fn labels(&self) -> String {
        let server = escape::text(self.server.as_bytes());
        let context = escape::text(self.context.as_bytes());
        format!("server=\"{}\",context=\"{}\"", quoted(&server), quoted(&context))
    }
}

/// All statistics, with the number of scanned Redis keys and of unrecognised values.
pub fn exposition(stats: &Stats, keys_walked: u64, foreign: u64, run: &Run<'_>) -> String {
    let of_run = run.labels();
    let mut text = outcome(run, true);
    for (name, help, figure) in GAUGES {
        let mut samples = String::new();
        for (schema, group, row) in stats.rows() {
            if let Some(value) = figure(row) {
                let labels = labels(stats.by().as_str(), schema, group);
                samples += &format!("{name}{{{of_run},{labels}}} {value}\n");
            }
        }
        // A heading without samples is allowed, but dashboards would show an empty metric.
        if !samples.is_empty() {
            head(&mut text, name, help);
            text.push_str(&samples);
        }
    }
    let help = "Records with this finding, except findings that rest on a schema's default TTL.";
    head(&mut text, "idemctl_findings", help);
    // Every code is printed, also with 0: an alert needs the value before the first finding.
    for code in FindingCode::ALL {
        let count = stats.proven(*code);
        text.push_str(&format!(
            "idemctl_findings{{{of_run},code=\"{}\"}} {count}\n",
            code.as_str()
        ));
    }
    for (name, help, value) in [
        ("idemctl_keys_walked", "Scanned Redis keys.", keys_walked),
        ("idemctl_foreign_records", "Unrecognised values.", foreign),
    ] {
        head(&mut text, name, help);
        text.push_str(&format!("{name}{{{of_run}}} {value}\n"));
    }
    text
}

/// The text for a run that could not read everything. It has no statistics, because partial numbers
/// would look like a drop.
pub fn down(run: &Run<'_>) -> String {
    outcome(run, false)
}

fn outcome(run: &Run<'_>, is_up: bool) -> String {
    let of_run = run.labels();
    let mut text = String::new();
    head(&mut text, "idemctl_up", "1 if the last run read everything, else 0.");
    // `idemctl_up` is printed in both cases, so that an alert notices a failed run.
    text.push_str(&format!("idemctl_up{{{of_run}}} {}\n", u8::from(is_up)));
    head(&mut text, "idemctl_last_run_timestamp_seconds", "End of the last run.");
    let seconds = seconds(run.at_ms);
    text.push_str(&format!("idemctl_last_run_timestamp_seconds{{{of_run}}} {seconds}\n"));
    text
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

fn head(text: &mut String, name: &str, help: &str) {
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
}

fn labels(by: &str, schema: &str, group: &StatsGroup) -> String {
    let value = match group {
        StatsGroup::Of(value) => escape::text(value),
        StatsGroup::None => String::new(),
        StatsGroup::Others => "(others)".to_owned(),
    };
    format!("schema=\"{}\",{by}=\"{}\"", quoted(schema), quoted(&value))
}

fn quoted(value: &str) -> String {
    // The backslash comes first, because the other escapes contain it.
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};
    use crate::domain::stats::StatsDimension;

    #[test]
    fn each_gauge_has_its_help_and_type_once_before_its_samples() {
        let mut stats = Stats::new(StatsDimension::State);
        stats.add(&[chi(CHI_LOCK, TimeLeft::Millis(58_500)), chi("garbage", TimeLeft::NoExpiry)]);
        let run = Run { server: "cache:6379/0", context: "prod", at_ms: 1_500 };
        let text = exposition(&stats, 7, 1, &run);
        assert!(text.starts_with("# HELP idemctl_up 1 if"), "{text}");
        let of_run = "server=\"cache:6379/0\",context=\"prod\"";
        for (name, labels, value) in [
            ("up", "", "1"),
            ("last_run_timestamp_seconds", "", "1.500"),
            ("records", ",schema=\"go-chi\",state=\"in-progress\"", "1"),
            ("records_without_expiry", ",schema=\"go-chi\",state=\"unreadable\"", "1"),
            ("oldest_age_seconds", ",schema=\"go-chi\",state=\"in-progress\"", "1.500"),
            ("findings", ",code=\"no-expiry\"", "0"),
            ("keys_walked", "", "7"),
        ] {
            let line = format!("idemctl_{name}{{{of_run}{labels}}} {value}");
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(
            down(&run).contains(&format!("idemctl_up{{{of_run}}} 0\n"))
                && !down(&run).contains("idemctl_records")
        );
        assert!(
            !text.contains("idemctl_memory_bytes"),
            "a gauge without samples is left out: {text}"
        );
        assert_eq!(text.matches("# TYPE idemctl_records gauge").count(), 1);
    }

    #[test]
    fn labels_are_quoted() {
        assert_eq!(quoted("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}

//! Figures on records in Prometheus's text format, for node_exporter's textfile collector.
//!
//! The format: <https://prometheus.io/docs/instrumenting/exposition_formats/>; names carry their base units, as `promtool check
//! metrics` asks.

use crate::domain::stats::{Group, Row, Stats};
use crate::render::escape;

/// A gauge for each row, where the row has the figure.
struct Gauge {
    name: &'static str,
    help: &'static str,
    figure: fn(&Row) -> Option<String>,
}

const GAUGES: [Gauge; 5] = [
    Gauge {
        name: "idemctl_records",
        help: "Records of idempotency keys.",
        figure: |row| Some(row.records.to_string()),
    },
    Gauge {
        name: "idemctl_records_without_expiry",
        help: "Records that never end by themselves.",
        figure: |row| Some(row.no_expiry.to_string()),
    },
    Gauge {
        name: "idemctl_value_bytes",
        help: "Bytes of all values together.",
        figure: |row| Some(row.bytes.to_string()),
    },
    Gauge {
        name: "idemctl_memory_bytes",
        help: "Memory that the records take, estimated by a sample.",
        figure: |row| row.memory_bytes().map(|bytes| bytes.to_string()),
    },
    Gauge {
        name: "idemctl_oldest_age_seconds",
        help: "Age of the oldest record, where anything tells an age.",
        figure: |row| row.oldest.map(|age| format!("{}.{:03}", age.millis / 1_000, age.millis % 1_000)),
    },
];

/// All figures, with how many Redis keys were walked and how many of the schemas' Redis keys hold other forms.
pub fn exposition(stats: &Stats, keys_walked: u64, foreign: u64) -> String {
    let mut text = String::new();
    for Gauge { name, help, figure } in &GAUGES {
        let samples: Vec<_> = stats
            .rows()
            .filter_map(|(schema, group, row)| Some((labels(stats.by().as_str(), schema, group), figure(row)?)))
            .collect();
        if !samples.is_empty() {
            head(&mut text, name, help);
            samples.iter().for_each(|(labels, value)| text.push_str(&format!("{name}{{{labels}}} {value}\n")));
        }
    }
    for (name, help, value) in [
        ("idemctl_keys_walked", "Redis keys that the walk looked at.", keys_walked),
        ("idemctl_foreign_records", "Values under the schemas' prefixes that have another form.", foreign),
    ] {
        head(&mut text, name, help);
        text.push_str(&format!("{name} {value}\n"));
    }
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
}

fn labels(by: &str, schema: &str, group: &Group) -> String {
    let value = match group {
        Group::Of(value) => escape::text(value),
        Group::None => String::new(),
        Group::Others => "(others)".to_owned(),
    };
    format!("schema=\"{}\",{by}=\"{}\"", quoted(schema), quoted(&value))
}

fn quoted(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};
    use crate::domain::stats::By;

    #[test]
    fn each_gauge_has_its_help_and_type_once_before_its_samples() {
        let mut stats = Stats::new(By::State);
        stats.add(&[chi(CHI_LOCK, Expiry::In(58_500)), chi("garbage", Expiry::Never)]);
        let text = exposition(&stats, 7, 1);
        assert!(text.starts_with("# HELP idemctl_records Records"), "{text}");
        for line in [
            "idemctl_records{schema=\"go-chi\",state=\"in-progress\"} 1",
            "idemctl_records_without_expiry{schema=\"go-chi\",state=\"unreadable\"} 1",
            "idemctl_oldest_age_seconds{schema=\"go-chi\",state=\"in-progress\"} 1.500",
            "idemctl_keys_walked 7",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(!text.contains("idemctl_memory_bytes"), "a gauge without samples is left out: {text}");
        assert_eq!(text.matches("# TYPE idemctl_records gauge").count(), 1);
    }

    #[test]
    fn labels_are_quoted() {
        assert_eq!(quoted("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}

//! How long a client or a queue may send a request again.

use std::time::Duration;

const DAY: u64 = 24 * 3_600;

/// A system that delivers a message or an event again, with the times that its documentation gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Redeliverer {
    /// The name in the setting `redeliverer`.
    pub(crate) name: &'static str,
    /// How long it delivers again, unless it is configured otherwise.
    usual_seconds: u64,
    /// The longest time, by configuration or by hand; `None` if there is no limit.
    longest_seconds: Option<u64>,
    /// Where the times come from.
    pub(crate) source: &'static str,
}

/// The systems whose times are known, by name.
pub(crate) static REDELIVERERS: [Redeliverer; 7] = [
    Redeliverer {
        name: "eventbridge",
        usual_seconds: DAY,
        longest_seconds: Some(DAY),
        source: "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html, https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_RetryPolicy.html",
    },
    Redeliverer {
        // GitHub sends nothing again by itself, but people and programs request it. For Enterprise
        // Server, it is 7 days.
        name: "github",
        usual_seconds: 3 * DAY,
        longest_seconds: Some(3 * DAY),
        source: "https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks",
    },
    Redeliverer {
        name: "kafka",
        usual_seconds: 7 * DAY,
        longest_seconds: None,
        source: "https://kafka.apache.org/43/configuration/broker-configs/#brokerconfigs_log.retention.hours",
    },
    Redeliverer {
        name: "pubsub",
        usual_seconds: 7 * DAY,
        longest_seconds: Some(31 * DAY),
        source: "https://docs.cloud.google.com/pubsub/docs/subscription-properties",
    },
    Redeliverer {
        // 25 retries take about 21 days, and people can retry a dead job for 6 months, which can be
        // configured.
        name: "sidekiq",
        usual_seconds: 21 * DAY,
        longest_seconds: None,
        source: "https://github.com/sidekiq/sidekiq/wiki/Error-Handling",
    },
    Redeliverer {
        name: "sqs",
        usual_seconds: 4 * DAY,
        longest_seconds: Some(14 * DAY),
        source: "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html",
    },
    Redeliverer {
        // Events of the last 30 days can be sent again by hand.
        name: "stripe",
        usual_seconds: 3 * DAY,
        longest_seconds: Some(30 * DAY),
        source: "https://docs.stripe.com/webhooks#automatic-retries, https://docs.stripe.com/webhooks/process-undelivered-events",
    },
];

/// How long the requests of a schema may come again, as this deployment states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryWindow {
    /// The setting `retry_window`.
    Stated(Duration),
    /// The setting `redeliverer`.
    Of(&'static Redeliverer),
}

impl Redeliverer {
    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        REDELIVERERS.iter().find(|redeliverer| redeliverer.name == name)
    }
}

impl RetryWindow {
    /// The time that a result has to last at least. A redeliverer may be configured to a longer
    /// one.
    pub(crate) fn usual(self) -> Duration {
        match self {
            Self::Stated(window) => window,
            Self::Of(redeliverer) => Duration::from_secs(redeliverer.usual_seconds),
        }
    }

    /// The time after which certainly no retry comes; `None` if there is no such limit.
    pub(crate) fn longest(self) -> Option<Duration> {
        match self {
            Self::Stated(window) => Some(window),
            Self::Of(redeliverer) => redeliverer.longest_seconds.map(Duration::from_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_each_redeliverer_with_its_source() {
        let document = include_str!("../../../docs/doctor.md");
        for redeliverer in &REDELIVERERS {
            let days = redeliverer.usual_seconds / DAY;
            let row = format!("| `{}` | {days} d", redeliverer.name);
            let line = document.lines().find(|line| line.starts_with(&row)).expect(&row);
            assert!(line.contains(redeliverer.source), "{line}");
            let longest = match redeliverer.longest_seconds {
                Some(seconds) => format!("| {} d |", seconds / DAY),
                None => "| any time |".to_owned(),
            };
            assert!(line.contains(&longest), "{line}");
        }
    }
}

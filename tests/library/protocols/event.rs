//! What happens in a history of the naive checker.

use std::fmt;

use super::calls::Step;
use super::protocol::Means;

/// What happened last.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Start,
    Call { worker: u8, step: Step, means: Option<Means>, is_lost: bool },
    Resend { worker: u8, step: Step, means: Option<Means> },
    Effect(u8),
    Fail(u8),
    LateFail(u8),
    GiveUp(u8),
    Crash(u8),
    Expiry(i64),
    Delay(i64),
    Restart,
}

impl Event {
    /// The step of a call.
    pub fn step(self) -> Option<Step> {
        match self {
            Self::Call { step, .. } | Self::Resend { step, .. } => Some(step),
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => write!(f, "starts"),
            Self::Call { worker, step, means, is_lost } => {
                let means = means.map_or("unknown".to_owned(), |means| format!("{means:?}"));
                let lost = if *is_lost { ", reply lost" } else { "" };
                write!(f, "{worker} {step:?}: {means}{lost}")
            }
            Self::Resend { worker, step, means } => {
                let means = means.map_or("unknown".to_owned(), |means| format!("{means:?}"));
                write!(f, "{worker} {step:?}: {means}, sent again")
            }
            Self::Effect(worker) => write!(f, "{worker} effect"),
            Self::Fail(worker) => write!(f, "{worker} fails"),
            Self::LateFail(worker) => write!(f, "{worker} fails after its effect"),
            Self::GiveUp(worker) => write!(f, "{worker} gives up"),
            Self::Crash(worker) => write!(f, "{worker} crashes"),
            Self::Delay(passes) => write!(f, "{} s pass, half of a TTL", passes / 1_000),
            Self::Restart => write!(f, "Redis restarts"),
            Self::Expiry(passes) => write!(f, "{} s pass", passes / 1_000),
        }
    }
}

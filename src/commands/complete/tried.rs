//! What was seen of a completion on a private server, and what may be promised for that.

use crate::context::Context;
use crate::domain::record::{Expiry, Record};
use crate::domain::schema::Meaning;
use crate::domain::step::Answer;
use crate::render::words;
use crate::sim::{Rehearsal, Rehearsed};

pub(super) enum Tried {
    /// There is nothing to promise.
    NotNeeded,
    Came(Rehearsal),
    /// No private server could be had; why.
    Nobody(String),
}

impl Tried {
    /// True where what is foretold of the next request was seen, or needs not be.
    pub(super) fn vouches_for(&self, completed: &Record) -> bool {
        match self {
            Self::NotNeeded => true,
            Self::Came(Rehearsal { then: Rehearsed::Answers(means), .. }) => {
                is_as_predicted(*means, completed.next_request.answer)
            }
            Self::Came(_) | Self::Nobody(_) => false,
        }
    }

    /// What the service's own begin answered.
    pub(super) fn answer(&self) -> Option<Meaning> {
        match self {
            Self::Came(Rehearsal { then: Rehearsed::Answers(means), .. }) => Some(*means),
            _ => None,
        }
    }

    /// How long the result will live, as far as that was seen.
    pub(super) fn lives(&self) -> Option<Expiry> {
        match self {
            Self::Came(rehearsal) => rehearsal.lives,
            _ => None,
        }
    }

    /// Says what the next request gets with the record completed, as far as that was seen.
    pub(super) fn tell(&self, context: &mut Context, completed: &Record) {
        let then = words::then(completed);
        match self {
            Self::NotNeeded => context.ui.status(&format!("Then {then}.")),
            Self::Came(_) if self.vouches_for(completed) => {
                context.ui.status(&format!(
                    "Then {then}. Tested with the service's scripts on a temporary local Redis."
                ));
            }
            Self::Came(other) => {
                let what = match &other.then {
                    Rehearsed::Answers(means) => {
                        format!("the service's begin answers {}", means.as_str())
                    }
                    Rehearsed::NotStored => "the service's complete step stores nothing".to_owned(),
                    Rehearsed::Unknown => {
                        "the service's begin answers what its schema does not know".to_owned()
                    }
                };
                let message = format!(
                    "tried on a private server, {what}, although the schema foretells that {then}"
                );
                context.ui.warning(&message);
            }
            Self::Nobody(why) => {
                context.ui.status(&format!(
                    "Nobody tried what comes then ({why}); the schema foretells that {then}."
                ));
            }
        }
    }
}

fn is_as_predicted(means: Meaning, predicted: Answer) -> bool {
    match predicted {
        Answer::Execute => means == Meaning::Acquired,
        Answer::Conflict => means == Meaning::Conflict,
        Answer::Replay => means == Meaning::Replay,
        Answer::Fail => matches!(means, Meaning::Fail | Meaning::Mismatch),
        Answer::Unknown => false,
    }
}

//! What a refused `complete` advises: only options with which it would store this response.

use anyhow::Result;

use super::delivery::check_delivery;
use super::owner_and_fingerprint::{
    ChosenCompletion, CompleteOptions, lacks_fingerprint, missing_fingerprint, refused,
};
use super::rehearsal::RehearsalOutcome;
use crate::change::{check_owner_has_name, removal_hint};
use crate::domain::change::removal;
use crate::domain::manual_step::{self, Completion, NotExecutable, Overrides};
use crate::domain::record::{Record, Response};
use crate::domain::schema::{Meaning, Step};
use crate::exit::CommandError;
use crate::render::escape;
use crate::session::Session;

/// Stands for the fingerprint that the operator has not given yet.
const ANY_FINGERPRINT: &str = "fingerprint";

const CREATE: Overrides = Overrides { create: true, replace: false };
const REPLACE: Overrides = Overrides { create: false, replace: true };

/// A response, and how it is to be stored over a record.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) record: &'a Record,
    pub(crate) step: &'a Step,
    pub(crate) response: &'a Response,
    /// The error text of a failed operation.
    pub(crate) error: Option<&'a str>,
    pub(crate) options: CompleteOptions<'a>,
}

/// Whether `complete` would store the response with other overrides.
enum Verdict {
    Stores,
    /// It would with the fingerprint of the request, which was not given.
    NeedsFingerprint,
    /// Why it would not.
    Refuses(String),
}

impl<'a> Attempt<'a> {
    /// Decides how the record is completed, and asks for the owner if the schema checks one.
    ///
    /// # Errors
    /// Why this record is not to be completed in this way.
    pub(crate) async fn choose(&self, session: &mut Session) -> Result<ChosenCompletion> {
        let record = self.record;
        let completion = match manual_step::completion_of(record, self.options.overrides) {
            Ok(completion) => completion,
            Err(why) => {
                let error = refused(record, &why);
                let hint = self.hint_of(session, &why).await;
                return Err(hint.into_iter().fold(error, CommandError::hint).into());
            }
        };
        if completion == Completion::OfLock && self.options.owner.is_none() {
            check_owner_has_name(record, self.step)?;
        }
        if lacks_fingerprint(record, completion, self.options.fingerprint) {
            return Err(self.ask_for_fingerprint(session).await.into());
        }
        ChosenCompletion::new(session, self.options, record, self.step)
    }

    /// That the fingerprint is missing, or why no fingerprint would help.
    async fn ask_for_fingerprint(&self, session: &Session) -> CommandError {
        if let Err(why) = self.with_fingerprint(ANY_FINGERPRINT).check(session).await {
            return why;
        }
        let hint = match &self.record.schema.write.fingerprint_is {
            Some(what) => format!("--fingerprint is {what}"),
            None if self.with_fingerprint("").check(session).await.is_err() => {
                "pass the fingerprint that the service computes from the request".to_owned()
            }
            None => "pass the fingerprint that the service computes from the request, or \
                --fingerprint '' if it stores an empty one for such a request"
                .to_owned(),
        };
        missing_fingerprint(self.record).hint(hint)
    }

    /// What to do about a record that is not completed without an override.
    async fn hint_of(&self, session: &Session, why: &NotExecutable) -> Option<String> {
        match why {
            NotExecutable::Absent => {
                let then = match self.with_overrides(CREATE).verdict(session).await {
                    Verdict::Stores => "--create stores the response anyway".to_owned(),
                    Verdict::NeedsFingerprint => {
                        "--create stores the response anyway, with the request's --fingerprint"
                            .to_owned()
                    }
                    Verdict::Refuses(why) => {
                        format!("--create cannot store the response: {why}")
                    }
                };
                Some(format!("check --schema and --prefix; if the lock has expired, {then}"))
            }
            NotExecutable::Released => {
                let removal = self.removal_advice(session).await;
                Some(format!("the next request executes the operation{removal}"))
            }
            NotExecutable::Completed | NotExecutable::Failed | NotExecutable::Unreadable(_) => {
                Some(match self.with_overrides(REPLACE).verdict(session).await {
                    Verdict::Stores => "pass --replace to replace it with this response".to_owned(),
                    Verdict::NeedsFingerprint => {
                        "pass --replace to replace it with this response, and the request's \
                        --fingerprint"
                            .to_owned()
                    }
                    Verdict::Refuses(why) => {
                        let removal = self.removal_advice(session).await;
                        format!("--replace cannot store it either: {why}{removal}")
                    }
                })
            }
            NotExecutable::Undescribed(_)
            | NotExecutable::WrongType(_)
            | NotExecutable::NoLock(_)
            | NotExecutable::NoSuchStep => None,
        }
    }

    /// The command that removes the record, as the end of a sentence, if the response can then be
    /// stored, or if the value cannot be read. Empty otherwise.
    async fn removal_advice(&self, session: &Session) -> String {
        let Ok(removal) = removal::of(self.record) else { return String::new() };
        let hint = removal_hint(self.record);
        let without = removal::record_without(self.record, &removal);
        let create = Attempt { record: &without, ..self.with_overrides(CREATE) };
        match create.verdict(session).await {
            Verdict::Refuses(_) if self.record.unreadable_because().is_none() => String::new(),
            Verdict::Refuses(_) => format!("; {hint}"),
            Verdict::Stores => format!("; {hint}, then store the response with --create"),
            Verdict::NeedsFingerprint => format!(
                "; {hint}, then store the response with --create and the request's --fingerprint"
            ),
        }
    }

    async fn verdict(&self, session: &Session) -> Verdict {
        let needs_fingerprint =
            match manual_step::completion_of(self.record, self.options.overrides) {
                Ok(completion) => {
                    lacks_fingerprint(self.record, completion, self.options.fingerprint)
                }
                Err(_) => false,
            };
        let attempt =
            if needs_fingerprint { self.with_fingerprint(ANY_FINGERPRINT) } else { *self };
        match attempt.check(session).await {
            Ok(()) if needs_fingerprint => Verdict::NeedsFingerprint,
            Ok(()) => Verdict::Stores,
            Err(why) => {
                let key = format!("{}: ", escape::key(&self.record.key));
                let why = why.message.strip_prefix(&key).unwrap_or(&why.message);
                Verdict::Refuses(why.strip_suffix("; nothing was done").unwrap_or(why).to_owned())
            }
        }
    }

    /// Passes if `complete` would store the response, in the name of the record's owner.
    ///
    /// # Errors
    /// Why it would not.
    async fn check(&self, session: &Session) -> Result<(), CommandError> {
        let record = self.record;
        let chosen = ChosenCompletion::without_asking(record, self.options)?;
        let inputs = chosen.checked_inputs(record, self.response, self.error)?;
        let step_lock = chosen.missing_lock(record, &inputs)?;
        let predicted = manual_step::predict_complete(record, &chosen.owner, step_lock.as_ref());
        if predicted != Meaning::Stored {
            let name = &record.schema.name;
            return Err(CommandError::usage(format!("{name} would refuse to store the response")));
        }
        let rehearsal =
            RehearsalOutcome::of(session, record, self.step, &inputs, step_lock.as_ref()).await;
        let predicted_record =
            manual_step::predicted_record(record, &inputs, rehearsal.times_left());
        check_delivery(&predicted_record, &inputs, &rehearsal)
    }

    fn with_overrides(&self, overrides: Overrides) -> Self {
        Self { options: CompleteOptions { overrides, ..self.options }, ..*self }
    }

    fn with_fingerprint(&self, fingerprint: &'a str) -> Self {
        let options = CompleteOptions { fingerprint: Some(fingerprint), ..self.options };
        Self { options, ..*self }
    }
}

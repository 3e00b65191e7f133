//! What completing comes to: on what, in whose name, for which payload.

use anyhow::Result;

use crate::change;
use crate::context::Context;
use crate::domain::manual::{self, Completion, Overrides, Refusal};
use crate::domain::record::{Content, Record, Response};
use crate::domain::schema::Step;
use crate::domain::step::Request;
use crate::exit::{CommandError, Exit};
use crate::render::escape;

pub(super) struct CompleteRequest<'a> {
    pub(super) overrides: Overrides,
    pub(super) owner: Option<&'a str>,
    pub(super) fingerprint: Option<&'a str>,
    pub(super) dry_run: bool,
}

pub(super) struct ChosenCompletion {
    pub(super) completion: Completion,
    /// Empty where the schema knows no owners.
    pub(super) owner: Vec<u8>,
    fingerprint: String,
}

impl ChosenCompletion {
    /// Decides, and asks for the owner where the schema checks one.
    ///
    /// # Errors
    /// Why this record is not to be completed in this way.
    pub(super) fn new(
        context: &mut Context,
        asked: CompleteRequest<'_>,
        record: &Record,
        step: &Step,
    ) -> Result<Self> {
        let completion =
            manual::of_record(record, asked.overrides).map_err(|why| refused(record, &why))?;
        let fingerprint = fingerprint(record, completion, asked.fingerprint)?;
        let owner = match completion {
            Completion::OfLock => {
                change::owner_of_lock(context, record, step, asked.owner, asked.dry_run)?
            }
            Completion::Creating | Completion::Replacing => {
                change::owner_of_new(record, asked.owner, true)?
            }
        };
        Ok(Self { completion, owner, fingerprint })
    }

    /// What the step's placeholders stand for.
    ///
    /// # Errors
    /// Permission: the schema keeps times, and the server does not tell the time.
    pub(super) fn request<'a>(
        &'a self,
        record: &'a Record,
        response: &'a Response,
        error: Option<&'a str>,
    ) -> Result<Request<'a>, CommandError> {
        let schema = &record.schema;
        let sends_time = schema.complete.as_ref().is_some_and(|step| schema.sends_time(step));
        let needs_time =
            sends_time || (schema.write.keeps_time() && self.completion != Completion::OfLock);
        let now_ms = change::time_for(record, needs_time)?;
        let before = &record.seen.keys[schema.result_role()].content;
        let before = Some(before).filter(|before| **before != Content::Absent);
        let request = Request::new(schema, &record.key, &self.owner, response);
        let request = Request { fingerprint: &self.fingerprint, error, now_ms, before, ..request };
        match &manual::lost_fields(record, &request)[..] {
            [] => is_read_back(record, &request).map(|()| request),
            lost => Err(loses(record, lost)),
        }
    }

    /// The value of the lock to take for the step, where there is no lock and the step wants one.
    pub(super) fn hold(
        &self,
        record: &Record,
        request: &Request<'_>,
    ) -> Result<Option<Content>, CommandError> {
        match self.completion {
            Completion::OfLock => Ok(None),
            _ => manual::hold(record, request)
                .map_err(|why| CommandError::usage(format!("{}: {why}", record.schema.name))),
        }
    }
}

/// Passes a result that can be written, and reads back as one: quotes in a key or a fingerprint may break the text that they
/// stand in.
fn is_read_back(record: &Record, request: &Request<'_>) -> Result<(), CommandError> {
    let (key, name) = (escape::text(&record.key), &record.schema.name);
    if let Some(why) = manual::unwritten_result(record, request) {
        return Err(CommandError::usage(format!("{key}: {name} cannot store this: {why}; nothing was done"))
            .hint("is the body what the service's client gets? Quotes and backslashes in the key, the owner or the fingerprint cannot stand in the result as they are"));
    }
    manual::unread_result(record, request).map_or(Ok(()), |why| {
        Err(CommandError::usage(format!(
            "{key}: what {name} writes here is not read back as a result: {why}; nothing was done"
        ))
        .hint("quotes and backslashes in the key, the owner or the fingerprint cannot stand in its result as they are"))
    })
}

/// That retries may fail for what the result would not have.
fn loses(record: &Record, lost: &[String]) -> CommandError {
    let (key, name) = (escape::text(&record.key), &record.schema.name);
    let fields =
        lost.iter().map(|path| escape::text(path.as_bytes())).collect::<Vec<_>>().join(", ");
    let keep = lost
        .iter()
        .map(|path| format!("{{kept:{}}}", escape::text(path.as_bytes())))
        .collect::<Vec<_>>()
        .join(" ");
    CommandError::usage(format!(
        "{key}: the result would lose {fields} of what is stored, which {name} does not write; nothing was done"
    ))
    .hint(format!(
        "retries may fail without: let result_value of a schema of your own (format 2) keep it, with {keep} or {{kept}}"
    ))
}

fn refused(record: &Record, why: &Refusal) -> CommandError {
    let (key, name) = (escape::text(&record.key), &record.schema.name);
    match why {
        Refusal::Absent => CommandError::new(Exit::No, format!("{key}: {why} under {name}; nothing was done"))
            .hint("is it the right --schema (and --prefix)? Where its lock has expired, --create stores the response"),
        Refusal::Completed => CommandError::usage(format!("{key}: {why}: retries get the result that is shown"))
            .hint("--replace stores this response in its place"),
        Refusal::Unreadable(_) => {
            CommandError::usage(format!("{key}: {why}")).hint("--replace stores this response in its place")
        }
        Refusal::Undescribed(step) => change::undescribed(&record.schema, step),
        Refusal::WrongType | Refusal::NoSuchStep => CommandError::usage(format!("{key}: {why}")),
    }
}

/// The hash of the payload that goes with the result: without the hash every retry would be told that its payload differs.
fn fingerprint(
    record: &Record,
    completion: Completion,
    given: Option<&str>,
) -> Result<String, CommandError> {
    let (stored, name) = (record.fingerprint(), &record.schema.name);
    let keeps = record.schema.write.keeps_fingerprint();
    // The locks of some services keep no hash: there the hash comes with the result.
    let is_the_locks = completion == Completion::OfLock && record.schema.locks_keep_fingerprint();
    match given {
        Some(_) if !keeps => {
            Err(CommandError::usage(format!("--fingerprint: {name} compares no payloads")).hint("leave it out"))
        }
        Some(given) if is_the_locks && stored != Some(given) => {
            Err(CommandError::usage("--fingerprint: the lock has its own, and keeps it").hint("leave it out"))
        }
        Some(given) => Ok(given.to_owned()),
        None => match stored {
            None if keeps && !is_the_locks => Err(CommandError::usage(format!(
                "{name} compares payloads: without the request's --fingerprint no retry would get the response"
            ))
            .hint(match &record.schema.write.fingerprint_is {
                Some(what) => format!("--fingerprint is {what}"),
                None => {
                    "give what the service makes of the request and compares, or --fingerprint '' where it makes none"
                        .to_owned()
                }
            })),
            stored => Ok(stored.unwrap_or_default().to_owned()),
        },
    }
}

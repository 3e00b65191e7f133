//! Where a schema lets a deployment's prefix stand, told from what its templates and its steps write.

use crate::domain::schema::location::{Checked, wrong};
use crate::domain::schema::prefix::PrefixPlace;
use crate::domain::schema::raw::{RawCall, RawKeys, RawSchema};

/// Where the prefix stands.
///
/// # Errors
/// A step writes `{prefix}`, and no key template does: begin would take a lock at another Redis key than is read.
pub(super) fn place(raw: &RawSchema<'_>) -> Checked<PrefixPlace> {
    let sent = calls(raw).any(|(_, call)| words(call).any(writes_prefix));
    match (is_written(&raw.keys), sent) {
        (false, true) => wrong("a step writes `{prefix}`: write it into the templates of [keys] as well"),
        (true, true) => Ok(PrefixPlace::InKey),
        (written, false) => Ok(match bare_key(raw, written) {
            Some(why) => PrefixPlace::Nowhere(why),
            None if written => PrefixPlace::Written,
            None => PrefixPlace::InFront,
        }),
    }
}

/// True when a key template writes `{prefix}`.
pub(super) fn is_written(keys: &RawKeys) -> bool {
    [&keys.record, &keys.lock, &keys.result].into_iter().flatten().any(|text| writes_prefix(text))
}

fn writes_prefix(text: &str) -> bool {
    text.contains("{prefix}")
}

/// A call that is sent the key without the prefix, in words: Redis keys that are made of that key bear no prefix. Where
/// the templates say where the prefix stands, what a script does with its arguments is left to the schema's author.
fn bare_key(raw: &RawSchema<'_>, written: bool) -> Option<String> {
    let names_key = |call: &RawCall<'_>| {
        let args = if written { &[][..] } else { &call.args };
        let words = call.keys.iter().chain(args).chain(call.command.iter().flatten());
        words.into_iter().any(|word| word.contains("{key}"))
    };
    calls(raw).find(|(_, call)| names_key(call)).map(|(step, call)| {
        let what = call.script.as_ref().map_or("a command".to_owned(), |script| format!("{script}.lua"));
        format!(
            "[{step}] sends {what} the bare {{key}}, and Redis keys that are made of it would lack the prefix: schema.toml has to write {{prefix}}, in [keys] and before that {{key}}"
        )
    })
}

/// Every call of every step, with the step's name.
fn calls<'a>(raw: &'a RawSchema<'a>) -> impl Iterator<Item = (&'static str, &'a RawCall<'a>)> {
    let steps = [
        ("begin", Some(&raw.begin)),
        ("renew", raw.renew.as_ref()),
        ("complete", Some(&raw.complete)),
        ("release", raw.release.as_ref()),
    ];
    let named = steps.into_iter().filter_map(|(name, step)| Some((name, step?)));
    named.flat_map(|(name, step)| step.call.iter().map(move |call| (name, call)))
}

fn words<'a>(call: &'a RawCall<'a>) -> impl Iterator<Item = &'a str> {
    let words = call.keys.iter().chain(&call.args).chain(call.command.iter().flatten());
    words.map(|word| &**word)
}

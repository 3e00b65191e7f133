//! The effect oracle: a command or a URL that returns how many operations were executed.

use std::time::Duration;

use serde_json::Value;

use super::options::Args;
use crate::ask_program::AskProgram;
use crate::domain::probe::{KEY_MARK, ProbeOutcome, ProbeRequest};
use crate::http::HttpClient;

/// Returns the number of effects.
pub(super) struct EffectsOracle {
    /// The command, or the URL.
    source: String,
    client: HttpClient,
    /// The time limit of the command.
    patience: Duration,
    pointer: Option<String>,
}

/// The oracle of `--effects`.
pub(super) fn oracle(args: &Args, client: HttpClient) -> Option<EffectsOracle> {
    let source = args.effects.clone()?;
    let pointer = args.effects_at.clone();
    Some(EffectsOracle { source, client, patience: args.request_timeout, pointer })
}

/// True if this is a URL, and not a command.
pub(super) fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// True if this command or URL counts the effects of one key.
pub(super) fn is_of_key(text: &str) -> bool {
    text.contains(KEY_MARK)
}

impl EffectsOracle {
    /// True if it counts the effects of one key, so that other traffic does not change it.
    pub(super) fn is_of_key(&self) -> bool {
        is_of_key(&self.source)
    }

    /// The number of effects, of this key if the oracle tells keys apart.
    ///
    /// # Errors
    /// Why there is no number.
    pub(super) async fn read(&self, key: &str) -> Result<u64, String> {
        let source = self.source.replace(KEY_MARK, key);
        let answer = if is_url(&source) {
            let request =
                ProbeRequest { method: "GET".to_owned(), url: source, ..ProbeRequest::default() };
            match self.client.send(&request).await.outcome {
                ProbeOutcome::Answered(answer) if !answer.body.is_kept() => {
                    return Err("--effects answered too much".to_owned());
                }
                ProbeOutcome::Answered(answer) if answer.is_success() => answer.body.beginning,
                ProbeOutcome::Answered(answer) => {
                    return Err(format!("--effects answered {}", answer.status));
                }
                ProbeOutcome::Unanswered(why) => return Err(format!("--effects: {why}")),
                ProbeOutcome::Abandoned => return Err("--effects: no answer".to_owned()),
            }
        } else {
            // A key has only letters, digits and dashes, so the shell needs no quotes.
            let (command, patience) = (source.into(), self.patience);
            let program = AskProgram { option: "--effects", command, patience };
            let (answer, _) = program.output(b"").await.map_err(|why| failed(&why))?;
            answer
        };
        // The answer may contain a secret, so it is not shown.
        let pointer = self.pointer.as_deref();
        number(&answer, pointer).ok_or_else(|| {
            let at = pointer.map(|pointer| format!(" at {pointer}")).unwrap_or_default();
            format!("--effects returned {} bytes, but no number{at}", answer.len())
        })
    }
}

/// An error of the command, without what it wrote to stderr, which may contain a secret.
fn failed(why: &str) -> String {
    let short = why.split(": ").next().unwrap_or_default();
    format!("--effects: {short}")
}

/// The number in an answer: a text, the one number of a JSON object, or what the pointer names.
fn number(answer: &[u8], pointer: Option<&str>) -> Option<u64> {
    let text = std::str::from_utf8(answer).ok()?.trim();
    let Some(pointer) = pointer else {
        if let Ok(number) = text.parse() {
            return Some(number);
        }
        let Value::Object(members) = serde_json::from_str(text).ok()? else { return None };
        let mut numbers = members.values().filter_map(Value::as_u64);
        let number = numbers.next()?;
        return if numbers.next().is_none() { Some(number) } else { None };
    };
    let document: Value = serde_json::from_str(text).ok()?;
    document.pointer(pointer)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn finds_the_number() {
        assert_eq!(number(b" 12\n", None), Some(12));
        assert_eq!(number(br#"{"count": 3, "of": "x"}"#, None), Some(3));
        assert_eq!(number(br#"{"a": 3, "b": 4}"#, None), None);
        assert_eq!(number(br#"{"a": 3, "b": {"c": 4}}"#, Some("/b/c")), Some(4));
        assert_eq!(number(b"-1", None), None);
        assert_eq!(number(b"", None), None);
    }
}

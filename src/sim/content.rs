//! What stands at a Redis key, by what the server says to a plain GET, and to HGETALL where that is refused.

use crate::domain::record::Content;
use crate::domain::step::StepReply;

/// What a reply to GET tells; `None` where no string is there.
pub(super) fn of_text(reply: StepReply) -> Option<Content> {
    match reply {
        StepReply::Text(text) => Some(Content::text(text)),
        StepReply::Nil => Some(Content::Absent),
        _ => None,
    }
}

/// What a reply to HGETALL tells of what is no string.
pub(super) fn of_hash(reply: StepReply) -> Content {
    let StepReply::Array(words) = reply else { return Content::Other("another type".to_owned()) };
    let text = |word| if let StepReply::Text(text) = word { Some(text) } else { None };
    Content::hash(words.into_iter().filter_map(text))
}

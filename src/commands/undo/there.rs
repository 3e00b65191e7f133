//! The command line for the server on which an operation was made.

use crate::domain::change::provenance::Provenance;
use crate::render::invocation::word;
use crate::session::Session;

/// The command line that undoes an operation at this place; `None` if it is unknown how to reach
/// it.
pub(super) fn command_there(session: &Session, place: &Provenance, op: &str) -> Option<String> {
    let op = word(op);
    let config = session.ui.invocation().config();
    if let Some(name) = session.settings.context_at(&place.address, place.db) {
        return Some(format!("idemctl {config}--context {} undo {op}", word(&name)));
    }
    // Behind Sentinels, the server at this address may no longer be the master.
    if place.service.is_some() {
        return None;
    }
    if place.address.starts_with('/') {
        return Some(format!(
            "idemctl {config}-s {} -n {} undo {op}",
            word(&place.address),
            place.db
        ));
    }
    Some(format!(
        "idemctl {config}-u {} undo {op}",
        word(&format!("redis://{}/{}", place.address, place.db))
    ))
}

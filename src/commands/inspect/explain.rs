//! `--explain`: how records can have reached their state.

use anyhow::Result;

use crate::domain::exploration::RecordPast;
use crate::domain::record::Record;
use crate::domain::schema::State;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::sim::exploration::{NotExplained, explain};
use crate::sim::simulate::LocalServers;

/// What can have led to each record; `None` for a record that does not exist.
///
/// # Errors
/// A schema cannot be explored, no local Redis can be started, or Ctrl-C.
pub(super) async fn pasts(
    session: &Session,
    records: &[&Record],
) -> Result<Vec<Option<RecordPast>>> {
    let environment = session.settings.environment();
    let like = session.settings.target().clone();
    let servers = LocalServers { path: environment.path(), temp_dir: environment.temp_dir(), like };
    let interrupt = Interrupt::listen()?;
    let mut pasts = Vec::new();
    for record in records {
        if record.state == State::Absent {
            pasts.push(None);
            continue;
        }
        if let Some(why) = record.schema.unexplorable_because() {
            return Err(CommandError::usage(format!("--explain: {why}")).into());
        }
        let past = interrupt.unless_raised(explain(record, &servers, &interrupt)).await;
        let Some(past) = past else {
            return Err(CommandError::interrupted("interrupted").into());
        };
        pasts.push(Some(past.map_err(|error| not_explained(record, error))?));
    }
    Ok(pasts)
}

fn not_explained(record: &Record, error: NotExplained) -> anyhow::Error {
    let message = format!("--explain: {}: {error}", record.schema.name);
    match error {
        NotExplained::NoServer(why) => {
            // Without a hint, the reason alone explains the error.
            let error = match why.hint() {
                Some(hint) => CommandError::new(Exit::Unreachable, message).hint(hint),
                None => CommandError::new(Exit::Unreachable, why.to_string()),
            };
            error.into()
        }
        NotExplained::Schema(_) => CommandError::usage(message).into(),
        NotExplained::Store(error) => error.into(),
    }
}

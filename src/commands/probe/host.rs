//! Which host is probed: another one than this machine has to be named twice.

use url::{Host, Url};

use crate::exit::CommandError;
use crate::session::Session;

/// Asks for the name of a host that is not this machine, unless `--yes` gives it.
///
/// # Errors
/// Not confirmed, or nobody can be asked.
pub(super) async fn confirm(
    session: &mut Session,
    url: &str,
    given: &[String],
) -> Result<(), CommandError> {
    let wrong = || CommandError::usage("the URL has no host");
    let url = Url::parse(url).map_err(|_| wrong())?;
    let host = url.host().ok_or_else(wrong)?;
    if is_this_machine(&host, url.port_or_known_default().unwrap_or(80)).await {
        return Ok(());
    }
    let name = host.to_string();
    if !given.is_empty() {
        return match given.contains(&name) {
            true => Ok(()),
            false => Err(not_confirmed().hint(format!("--yes must be {name} here"))),
        };
    }
    if !session.ui.is_interactive() {
        return Err(CommandError::usage(format!(
            "{name} is another machine, and without a terminal its name cannot be asked for"
        ))
        .hint(format!("if you may load it, add --yes {name}")));
    }
    let question = format!("probe sends real requests to {name}. Type `{name}` to continue");
    let typed = session.ui.ask_for(&question)?;
    if typed.trim() == name { Ok(()) } else { Err(not_confirmed()) }
}

/// True for a loopback address, and for `localhost` if it has no other addresses.
async fn is_this_machine(host: &Host<&str>, port: u16) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => {
            if *name != "localhost" {
                return false;
            }
            match tokio::net::lookup_host((*name, port)).await {
                Ok(mut addresses) => addresses.all(|address| address.ip().is_loopback()),
                Err(_) => false,
            }
        }
    }
}

fn not_confirmed() -> CommandError {
    CommandError::usage("not confirmed; nothing was sent")
}

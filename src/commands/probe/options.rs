//! The options of `probe`, and its help.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use url::{Host, Url};

use crate::args::{JunitArgs, Output, SchemaArgs, parse_ttl};
use crate::domain::probe::{CHECKS, ProbeCheck, ProbeProfile, parse_profile};
use crate::exit::CommandError;
use crate::files;
use crate::render::escape;
use crate::session::Session;

/// Send a service duplicates, and judge its answers
///
/// URL, -X, -H and -d are as in curl. idemctl puts a new key into each request: into the header
/// Idempotency-Key, or where --key-header, --key-field or --key-parameter say. {{key}} in the URL, in
/// a header or in the body is replaced by the key, so that each request can create another order.
/// Keys begin with idemctl-probe, or with 1de3c710 if they are UUIDs.
///
/// Each check has one of five results. `pass` and `fail` are judged by the profile, which cites its
/// clause. `inconclusive` means that the check was made and shows neither, `not-applicable` that it
/// cannot be made, and `reported` that the profile leaves open what a service does.
///
/// Only --effects shows how often the service executed: a command or a URL that prints a number, or
/// a JSON object with one number. {{key}} in it is replaced by the key. Without it, idemctl compares
/// answers, and never says that a request was executed once.
///
/// Simultaneous requests have a connection each. idemctl holds back the last byte of every header
/// section until all connections are ready, and then sends these bytes together. A pass counts only
/// if all were sent before the first answer. A failure always counts.
///
/// With --schema and a server in -u, -h, -p, -s, --sentinel or --context, idemctl also reads the
/// record of each key in Redis. At the end it removes the records of the keys that it sent, with a
/// backup. Only --faults changes them before.
///
/// The requests are real: they create what the service creates. A host that is not this machine has
/// to be typed, or given with --yes. Redirects are not followed.
///
/// Exit status 1 if a judged check fails, else 3 if a check is inconclusive that is judged or named
/// by --only, else 0. With --expect, 1 if a failure is new or gone.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// URL of the service's operation, such as http://localhost:8080/payments
    #[arg(id = "target_url", value_name = "URL", required_unless_present = "list")]
    pub(super) target: Option<String>,

    /// HTTP method
    #[arg(short = 'X', long = "request", value_name = "METHOD", default_value = "POST")]
    pub(super) method: String,

    /// Header line; @FILE reads header lines from FILE
    ///
    /// For example 'Content-Type: application/json'.
    #[arg(short = 'H', long = "header", value_name = "LINE")]
    pub(super) headers: Vec<String>,

    /// Body of the request; @FILE reads it from FILE
    #[arg(short = 'd', long = "data", value_name = "DATA")]
    pub(super) data: Option<String>,

    /// Header of the key [default: that of the profile]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key_field", "key_parameter"])]
    pub(super) key_header: Option<String>,

    /// JSON pointer of the key in the body, such as /idempotency_key
    #[arg(long, value_name = "POINTER", conflicts_with = "key_parameter")]
    pub(super) key_field: Option<String>,

    /// Parameter of the key in the query
    #[arg(long, value_name = "NAME")]
    pub(super) key_parameter: Option<String>,

    /// Use UUIDs as keys, for a service that accepts nothing else
    #[arg(long)]
    pub(super) uuid_keys: bool,

    /// Name or file of the rules
    ///
    /// The built-in ones are ietf-07, stripe, adyen and square. They judge the checks.
    #[arg(long, value_name = "NAME|FILE", default_value = "ietf-07")]
    pub(super) profile: String,

    /// Another valid body; @FILE reads it from FILE
    ///
    /// For mismatch-payload and concurrent-payloads. Without it, the first number of a JSON body is
    /// raised.
    #[arg(long, value_name = "DATA")]
    pub(super) other_data: Option<String>,

    /// Body that the service answers with an error; @FILE reads it from FILE
    ///
    /// For the check error-then-retry.
    #[arg(long, value_name = "DATA")]
    pub(super) failing_data: Option<String>,

    /// Header line of another caller; @FILE reads it from FILE
    ///
    /// For example 'Authorization: Bearer …'.
    #[arg(long = "as", value_name = "LINE")]
    pub(super) other_caller: Option<String>,

    /// Command or URL that returns how many operations were executed
    #[arg(long, value_name = "CMD|URL")]
    pub(super) effects: Option<String>,

    /// JSON pointer of the number in what --effects returns
    #[arg(long, value_name = "POINTER", requires = "effects")]
    pub(super) effects_at: Option<String>,

    /// Path of another operation of the service, such as /refunds
    ///
    /// For the check mismatch-path, which sends the same request there. It must be accepted there
    /// with a key of its own.
    #[arg(long, value_name = "PATH")]
    pub(super) other_path: Option<String>,

    /// Also change and delete records while the service uses them
    ///
    /// Only those of keys that this run made. Needs --schema and a server in an option. idemctl
    /// removes locks and results, replaces results, and says what the service does.
    #[arg(long)]
    pub(super) faults: bool,

    /// Number of simultaneous requests
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(2..=200)
    )]
    pub(super) concurrency: u16,

    /// Rounds of the checks with simultaneous requests
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u16).range(1..=100)
    )]
    pub(super) rounds: u16,

    /// Pause before the retry of the check replay-later
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_ttl)]
    pub(super) later: Duration,

    /// The most requests that this run may send
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub(super) max_requests: usize,

    /// Time limit of each answer
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_ttl)]
    pub(super) request_timeout: Duration,

    /// CA certificates to trust instead of the system's, in PEM
    #[arg(long, value_name = "FILE")]
    pub(super) http_cacert: Option<PathBuf>,

    /// Do not verify the service's certificate
    #[arg(long)]
    pub(super) http_insecure: bool,

    /// Make only these checks
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = ids(), conflicts_with = "skip")]
    pub(super) only: Vec<String>,

    /// Leave out these checks
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = ids())]
    pub(super) skip: Vec<String>,

    /// List all checks
    #[arg(long)]
    pub(super) list: bool,

    /// Print each request as a curl command, and send nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Name of a host that is not this machine, instead of typing it
    ///
    /// May be repeated.
    #[arg(long, value_name = "HOST")]
    pub(super) yes: Vec<String>,

    /// Name of the protected context, instead of typing it; for scripts
    #[arg(long, value_name = "NAME")]
    pub(super) confirm: Option<String>,

    /// Compare with FILE, which `-o json` wrote
    ///
    /// Exit status 1 only if a failure is new, or gone.
    #[arg(long, value_name = "FILE")]
    pub(super) expect: Option<PathBuf>,

    #[command(flatten)]
    pub(super) junit: JunitArgs,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) schemas: SchemaArgs,
}

impl Args {
    /// True if the check is to be made.
    pub(super) fn is_chosen(&self, check: &ProbeCheck) -> bool {
        let is_named = |ids: &[String]| ids.iter().any(|id| id == check.id);
        if self.only.is_empty() { !is_named(&self.skip) } else { is_named(&self.only) }
    }

    /// True if --only names the check.
    pub(super) fn is_named(&self, check: &ProbeCheck) -> bool {
        self.only.iter().any(|id| id == check.id)
    }
}

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(CHECKS.iter().map(|check| check.id))
}

/// Asks for the name of a host that is not this machine, unless `--yes` gives it.
///
/// # Errors
/// Not confirmed, or nobody can be asked.
pub(super) async fn confirm_host(
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

/// The built-in profiles, by their names.
const BUILT_IN: [(&str, &str); 4] = [
    ("ietf-07", include_str!("../../../profiles/ietf-07.toml")),
    ("stripe", include_str!("../../../profiles/stripe.toml")),
    ("adyen", include_str!("../../../profiles/adyen.toml")),
    ("square", include_str!("../../../profiles/square.toml")),
];

/// Larger than any profile.
const LARGEST: u64 = 1 << 20;

/// The profile with this name, or in this file.
///
/// # Errors
/// Usage: there is none, or it is not valid.
pub(super) fn load_profile(given: &str) -> Result<ProbeProfile, CommandError> {
    let shown = escape::text(given.as_bytes());
    let wrong = |why: String| {
        let why = escape::text(why.as_bytes());
        CommandError::usage(format!("--profile: {shown}: {why}"))
    };
    for (name, text) in BUILT_IN {
        if name == given {
            return parse_profile(text).map_err(wrong);
        }
    }
    let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let hint = format!("profiles: {}, or the path of a file", names.join(", "));
    let text = files::read_text(Path::new(given), LARGEST)
        .map_err(|error| wrong(error.to_string()).hint(hint))?;
    parse_profile(&text).map_err(wrong)
}

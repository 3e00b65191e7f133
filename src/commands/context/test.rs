//! `idemctl context test`.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ConnectionArgs, Output, SchemaArgs};
use crate::exit::Exit;
use crate::render::connection_test::{self as render, Check};
use crate::session::Session;
use crate::store::{Client, ReadLimit, StoreError};

/// Connect to a context's server, and show its properties and the user's rights
///
/// Prints one line each for the server and its version, its role, the user, and the rights to scan
/// the keyspace, to read records and to change them. Nothing is changed, because rights are checked
/// with queued commands that are then discarded.
///
/// Exit status 4 if the user lacks a right, 5 if the server cannot be reached, 6 if it refuses
/// changes.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Name of the context [default: the current one, or the server in the options]
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// The idempotency key of the records that are read. No service uses it.
const KEY: &[u8] = b"context-test";

/// The commands that idemctl sends to change records, with the idemctl commands that send them.
/// `KEY` is replaced with a Redis key.
const CHANGES: [(&str, &str, &[&[&str]]); 3] = [
    (
        "remove",
        "force-unlock, extend, sweep and purge",
        &[&["UNLINK", "KEY"], &["PEXPIREAT", "KEY", "1"]],
    ),
    ("restore", "restore and undo", &[&["RESTORE", "KEY", "0", ""]]),
    (
        "step",
        "begin, complete and release",
        &[
            &["EVAL", "return 1", "1", "KEY"],
            &["SET", "KEY", ""],
            &["DEL", "KEY"],
            &["PEXPIRE", "KEY", "1"],
        ],
    ),
];

impl Args {
    /// The connection to test: that of the context that is named.
    pub(super) fn connection(&self, given: &ConnectionArgs) -> ConnectionArgs {
        let mut connection = given.clone();
        if self.name.is_some() {
            connection.context.clone_from(&self.name);
        }
        connection
    }
}

pub(super) async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let client = session.connect().await?;
    let mut test = ContextTest { checks: Vec::new(), exit: Exit::Done };
    test.server(session, &client).await?;
    let target = session.settings.target();
    let user = target.user.clone().unwrap_or_else(|| "default".to_owned());
    let with = if target.credentials.is_some() {
        "or the user that the command prints, with a password"
    } else if target.password.is_some() {
        "with a password"
    } else {
        "without a password"
    };
    test.says("user", Some(true), format!("{user}, {with}"));
    match client.may_scan().await {
        Ok(()) => test.says(
            "scan",
            Some(true),
            "list, stats, check and other commands may scan the keyspace",
        ),
        Err(error) => test.refused("scan", "list, stats and check", &error),
    }
    // One key shows nothing of the masters that do not answer.
    if test.exit != Exit::Unreachable
        && let Some(redis_key) = test.read(session, &client).await?
    {
        test.change(session, &client, &redis_key).await?;
    }
    if let Some(name) = session.settings.context_name()
        && let Some(shared) = session.settings.file().shared_access(name)
    {
        session.ui.note(&shared);
    }
    session.show(args.output, "checks", &test.checks, |view| render::page(&test.checks, view))?;
    if test.exit == Exit::Permission {
        session.ui.hint("docs/connecting.md (ACL users) has two ready-made users");
    }
    Ok(test.exit)
}

struct ContextTest {
    checks: Vec<Check>,
    exit: Exit,
}

impl ContextTest {
    fn says(&mut self, check: &'static str, ok: Option<bool>, says: impl Into<String>) {
        self.checks.push(Check { check, ok, says: says.into() });
    }

    /// Notes what the user may not do, or the server does not do.
    fn refused(&mut self, check: &'static str, needed_by: &str, error: &StoreError) {
        let exit = if error.is_permission() {
            Exit::Permission
        } else if error.lost_the_reply() {
            Exit::Unreachable
        } else {
            Exit::RefusedForNow
        };
        if self.exit == Exit::Done {
            self.exit = exit;
        }
        self.says(check, Some(false), format!("{needed_by} do not work here: {error}"));
    }

    async fn server(&mut self, session: &Session, client: &Client) -> Result<()> {
        let place = match session.settings.context_name() {
            Some(name) => format!("{name} at {}", client.name()),
            None => client.name(),
        };
        let Some(greeting) = client.greeting().await? else {
            self.says(
                "server",
                Some(true),
                format!("{place} answers, but the user may not read its version (+hello)"),
            );
            return Ok(());
        };
        let name = if greeting.server == "valkey" { "Valkey" } else { "Redis" };
        self.says("server", Some(true), format!("{place} answers: {name} {}", greeting.version));
        let masters = client.masters().await?;
        let role = if client.is_cluster() {
            format!("{} of a cluster with {} masters", greeting.role, masters.len())
        } else {
            format!("{} ({})", greeting.role, greeting.mode)
        };
        self.says("role", Some(true), role);
        Ok(())
    }

    /// Reads a record of each schema. Returns a Redis key that the user may read.
    async fn read(&mut self, session: &mut Session, client: &Client) -> Result<Option<Vec<u8>>> {
        let catalog = session.catalog(&SchemaArgs::default())?;
        let mut may = Vec::new();
        let mut may_not = Vec::new();
        let mut readable_key = None;
        let mut refusal = None;
        for schema in catalog.chosen() {
            let redis_keys = schema.redis_keys(KEY);
            let seen = client
                .reader()
                .read_or_fail(std::slice::from_ref(&redis_keys), ReadLimit::Bytes(0))
                .await;
            let mut error = match seen {
                Ok(seen) => seen.into_iter().find_map(Result::err),
                Err(error) => Some(error),
            };
            if error.is_none() {
                error = refused_value(client, &redis_keys[0]).await?;
            }
            if let Some(error) = error {
                may_not.push(schema.name.as_str());
                refusal = Some(error);
                continue;
            }
            may.push(schema.name.as_str());
            if readable_key.is_none() {
                readable_key = redis_keys.into_iter().next();
            }
        }
        if !may.is_empty() {
            self.says("read", Some(true), format!("the records of {}", may.join(", ")));
        }
        if let Some(error) = refusal {
            // A user needs no rights for schemas that the context does not list.
            if may.is_empty() || catalog.names_schemas() {
                self.refused("read", &format!("the records of {}", may_not.join(", ")), &error);
            } else {
                self.says(
                    "read",
                    None,
                    format!("not the records of {}: {error}", may_not.join(", ")),
                );
            }
        }
        Ok(readable_key)
    }

    async fn change(&mut self, session: &Session, client: &Client, redis_key: &[u8]) -> Result<()> {
        if !session.settings.may_change() {
            self.says("change", None, session.settings.read_only());
            return Ok(());
        }
        if let Err(error) = client.require_not_replica().await {
            self.refused("change", "commands that change records", &error);
            return Ok(());
        }
        // The commands are only queued between MULTI and DISCARD, so that nothing is changed.
        // Without MULTI, no right can be tested.
        if let Some(error) = client.refusals(redis_key, &[]).await?.first() {
            self.refused("change", "commands that change records", error);
            return Ok(());
        }
        for (check, needed_by, commands) in CHANGES {
            let mut sent: Vec<Vec<&[u8]>> = Vec::new();
            for command in commands {
                let mut words = Vec::with_capacity(command.len());
                for word in *command {
                    words.push(if *word == "KEY" { redis_key } else { word.as_bytes() });
                }
                sent.push(words);
            }
            let refusals = client.refusals(redis_key, &sent).await?;
            // A server without memory queues nothing, but removes keys all the same.
            let counts = |error: &&StoreError| check != "remove" || !error.is_out_of_memory();
            match refusals.iter().find(counts) {
                Some(error) => self.refused(check, needed_by, error),
                None => self.says(
                    check,
                    Some(true),
                    format!("{needed_by} have the permissions that they need"),
                ),
            }
        }
        Ok(())
    }
}

/// Why the user may not read the value of a Redis key, which need not exist. Without MULTI, that
/// cannot be tested.
async fn refused_value(client: &Client, redis_key: &[u8]) -> Result<Option<StoreError>> {
    if !client.refusals(redis_key, &[]).await?.is_empty() {
        return Ok(None);
    }
    let read = vec![&b"GETRANGE"[..], redis_key, b"0", b"0"];
    let refusals = client.refusals(redis_key, &[read]).await?;
    // A server without memory queues nothing, but reads all the same.
    Ok(refusals.into_iter().find(|error| !error.is_out_of_memory()))
}

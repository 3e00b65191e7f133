//! The advice of `doctor`, with command lines that name the servers they are for.

use std::borrow::Cow;

use super::invocation::{self, Invocation};
use crate::domain::doctor::{NodeFacts, Statement};

/// The beginning of a command that changes a setting of a server, as checks write it.
const SETTING: &str = "`CONFIG SET ";

/// Completes the command lines in advice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DoctorRemedies<'a> {
    /// The options of this run.
    pub(crate) invocation: &'a Invocation,
    pub(crate) nodes: &'a [NodeFacts],
}

impl DoctorRemedies<'_> {
    /// The advice for a statement; `None` if there is nothing to do.
    pub(crate) fn of(&self, statement: &Statement) -> Option<String> {
        let remedy = statement.remedy()?;
        let text = self.invocation.complete(&remedy);
        if !text.contains(SETTING) {
            return Some(text.into_owned());
        }
        Some(self.with_servers(text, &self.concerned(statement)))
    }

    /// The servers that the statement names; all servers if it names none.
    fn concerned(&self, statement: &Statement) -> Vec<&NodeFacts> {
        let named = &statement.judgement.nodes;
        let mut concerned = Vec::new();
        for node in self.nodes {
            if named.is_empty() || named.contains(&node.name) {
                concerned.push(node);
            }
        }
        concerned
    }

    /// Names the servers in advice to change a setting.
    fn with_servers(&self, text: Cow<'_, str>, nodes: &[&NodeFacts]) -> String {
        let [first, others @ ..] = nodes else { return text.into_owned() };
        // No user may send it, so a command line would be of no use.
        if nodes.iter().all(|node| node.lacks_config()) {
            let settings = text.replace(SETTING, "`");
            return format!(
                "{settings} This server does not answer CONFIG, so this is a setting in the console \
                 of the provider."
            );
        }
        let mut whole = text.replace(SETTING, &format!("`{} CONFIG SET ", redis_cli(first)));
        if first.needs_login {
            whole.push_str(" USER is a user who may send CONFIG SET.");
        }
        if nodes.iter().any(|node| node.refuses_config()) {
            whole.push_str(
                " On a managed service, this is a setting in the console of the provider.",
            );
        }
        if !others.is_empty() {
            let mut names = Vec::with_capacity(nodes.len());
            for node in nodes {
                names.push(node.name.split('/').next().unwrap_or_default());
            }
            let names = names.join(", ");
            whole.push_str(&format!(" Do this on each of these servers: {names}."));
        }
        let mut replicas = Vec::new();
        for node in nodes {
            replicas.extend(node.replica_addresses());
        }
        if !replicas.is_empty() {
            let names = replicas.join(", ");
            whole.push_str(&format!(
                " Do it on the replicas, too, because each server has its own settings: {names}."
            ));
        }
        whole
    }
}

/// `redis-cli -h HOST -p PORT`, without a password.
fn redis_cli(node: &NodeFacts) -> String {
    let mut line = "redis-cli".to_owned();
    for word in &node.cli_options {
        line.push(' ');
        line.push_str(&invocation::word(word));
    }
    if node.needs_login {
        line.push_str(" --user USER --askpass");
    }
    line
}

//! The advice of `doctor`, with command lines that name the servers they are for.

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
        let text = self.invocation.complete(&remedy).into_owned();
        let named = &statement.judgement.nodes;
        let is_concerned = |node: &&NodeFacts| named.is_empty() || named.contains(&node.name);
        let nodes: Vec<_> = self.nodes.iter().filter(is_concerned).collect();
        match &nodes[..] {
            [first, ..] if text.contains(SETTING) => Some(with_servers(&text, first, &nodes)),
            _ => Some(text),
        }
    }
}

/// Names the servers, and their replicas, in advice to change a setting.
fn with_servers(text: &str, first: &NodeFacts, nodes: &[&NodeFacts]) -> String {
    if nodes.iter().any(|node| node.refuses_config()) {
        let settings = text.replace(SETTING, "`");
        return format!(
            "{settings} This user may not send CONFIG. On a managed service, this is a setting in \
             the console of the provider."
        );
    }
    let mut whole = text.replace(SETTING, &format!("`{} CONFIG SET ", redis_cli(first)));
    let mut servers = Vec::new();
    for node in nodes {
        servers.push(node.name.split('/').next().unwrap_or_default().to_owned());
        servers.extend(node.replica_addresses());
    }
    if servers.len() > 1 {
        whole.push_str(&format!(" Do this on each of these servers: {}.", servers.join(", ")));
    }
    whole
}

/// `redis-cli -h HOST -p PORT`, without a password.
fn redis_cli(node: &NodeFacts) -> String {
    let mut words = vec!["redis-cli".to_owned()];
    words.extend(node.cli_options.iter().map(|word| invocation::word(word)));
    if node.needs_login {
        words.push("--user USER --askpass".to_owned());
    }
    words.join(" ")
}

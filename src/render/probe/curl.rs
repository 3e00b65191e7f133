//! Requests as curl commands for a shell, without credentials.

use bstr::ByteSlice as _;
use url::Url;

use crate::domain::probe::{
    ProbeExchange, ProbeOutcome, ProbeRequest, ProbeStep, ProbeStepResult, UUID_PREFIX,
    is_masked_parameter,
};

/// The most bytes of a body in a command line.
const MOST_BODY: usize = 2_000;

/// A URL whose secret parameters are replaced.
pub(crate) fn masked_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let mut pairs = Vec::new();
    let mut has_secret = false;
    for (name, value) in url.query_pairs() {
        let is_secret = is_masked_parameter(&name);
        has_secret |= is_secret;
        let value = if is_secret { "***".to_owned() } else { value.into_owned() };
        pairs.push((name.into_owned(), value));
    }
    if !has_secret {
        return text.to_owned();
    }
    url.query_pairs_mut().clear().extend_pairs(pairs);
    url.into()
}

/// The URL of a request for messages.
pub(crate) fn url(request: &ProbeRequest) -> String {
    masked_url(&request.url)
}

/// The commands that repeat the steps of a check, each on a line of its own. The keys are variables,
/// because a used key would only be replayed.
pub(super) fn commands_of_results(results: &[ProbeStepResult]) -> Vec<String> {
    let mut shell = ShellLines::default();
    for result in results {
        let Some(first) = result.exchanges.first() else { continue };
        if result.spread_us.is_some() {
            let requests: Vec<_> =
                result.exchanges.iter().map(|exchange| exchange.request.clone()).collect();
            shell.together(&requests);
        } else if is_overlap(&result.exchanges) {
            shell.overlap(&first.request, &result.exchanges[1].request);
        } else if first.outcome == ProbeOutcome::Abandoned {
            shell.abandon(&first.request);
        } else {
            shell.send(&first.request);
        }
    }
    shell.lines()
}

/// The commands of steps that were not made.
pub(super) fn commands_of_steps(steps: &[ProbeStep]) -> Vec<String> {
    let mut shell = ShellLines::default();
    for step in steps {
        match step {
            ProbeStep::CountEffects(_) => {}
            ProbeStep::Send(request) | ProbeStep::SendUntilFree(request) => shell.send(request),
            ProbeStep::Together(requests) => shell.together(requests),
            ProbeStep::Abandon(request, _) => shell.abandon(request),
            ProbeStep::Overlap(first, second, _) => shell.overlap(first, second),
        }
    }
    shell.lines()
}

fn is_overlap(exchanges: &[ProbeExchange]) -> bool {
    let [first, second, ..] = exchanges else { return false };
    match (first.ended_us, second.sent_us) {
        (Some(ended), Some(sent)) => sent < ended,
        _ => false,
    }
}

/// Shell lines, and the keys in them.
#[derive(Default)]
struct ShellLines {
    /// The keys, each of which is the variable `$K1`, `$K2` …
    keys: Vec<String>,
    /// The credentials, each of which is a variable.
    secrets: Vec<(String, Vec<u8>)>,
    lines: Vec<String>,
}

impl ShellLines {
    fn send(&mut self, request: &ProbeRequest) {
        let line = self.command(request, "");
        self.add(line);
    }

    fn abandon(&mut self, request: &ProbeRequest) {
        let line = self.command(request, "--max-time 0.05 ");
        self.add(line);
    }

    fn overlap(&mut self, first: &ProbeRequest, second: &ProbeRequest) {
        let first = self.command(first, "");
        let second = self.command(second, "");
        self.add(format!("{first} & sleep 0.01; {second}; wait"));
    }

    fn together(&mut self, requests: &[ProbeRequest]) {
        let Some(first) = requests.first() else { return };
        if requests.iter().all(|request| request == first) {
            let count = requests.len();
            let command = self.command(first, "");
            self.add(format!("for i in $(seq {count}); do {command} & done; wait"));
            return;
        }
        for request in requests.iter().take(3) {
            let command = self.command(request, "");
            self.add(format!("{command} &"));
        }
        if requests.len() > 3 {
            self.add(format!("# and {} more like these, at the same time", requests.len() - 3));
        }
        self.add("wait".to_owned());
    }

    /// Adds a line, unless the one before it is the same.
    fn add(&mut self, line: String) {
        self.lines.push(line);
    }

    fn lines(self) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            let number = index + 1;
            lines.push(match key.starts_with(UUID_PREFIX) {
                true => format!("K{number}=$(uuidgen)"),
                false => format!("K{number}=idemctl-probe-by-hand-$(date +%s%N)"),
            });
        }
        // Several rounds repeat the same lines.
        for line in self.lines {
            if !lines.contains(&line) || line.starts_with("curl") {
                lines.push(line);
            }
        }
        lines
    }

    fn command(&mut self, request: &ProbeRequest, options: &str) -> String {
        if let Some(key) = &request.key
            && !self.keys.contains(key)
        {
            self.keys.push(key.clone());
        }
        let method = &request.method;
        let target = self.word(&masked_url(&request.url));
        let mut command = format!("curl -i {options}-X {method} {target}");
        for (name, value) in &request.headers {
            let has_key = request.key.as_ref().is_some_and(|key| value.contains_str(key));
            let header = if request.masks(name) && !has_key {
                let variable = self.variable(name, value);
                format!("'{name}: '\"${variable}\"")
            } else if value.is_empty() {
                // curl leaves out a header that ends with a colon.
                self.word(&format!("{name};"))
            } else {
                self.word(&format!("{name}: {}", String::from_utf8_lossy(value)))
            };
            command.push_str(&format!(" -H {header}"));
        }
        if request.body.is_empty() {
            return command;
        }
        // curl would add a type of its own.
        if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            command.push_str(" -H 'Content-Type:'");
        }
        match std::str::from_utf8(&request.body) {
            Ok(body) if body.len() <= MOST_BODY && !body.contains(is_unprintable) => {
                let body = self.word(body);
                command.push_str(&format!(" --data-raw {body}"));
            }
            _ => command.push_str(" --data-binary @BODY"),
        }
        command
    }

    /// The variable of a credential: `AUTHORIZATION`, and `AUTHORIZATION_2` for another value.
    fn variable(&mut self, name: &str, value: &[u8]) -> String {
        let is_other = |c: char| !c.is_ascii_alphanumeric();
        let name = name.to_ascii_uppercase().replace(is_other, "_");
        let known = (name.clone(), value.to_vec());
        if !self.secrets.contains(&known) {
            self.secrets.push(known.clone());
        }
        let mut number = 0;
        for secret in &self.secrets {
            if secret.0 == name {
                number += 1;
            }
            if *secret == known {
                break;
            }
        }
        if number > 1 { format!("{name}_{number}") } else { name }
    }

    /// A word for the shell, with the variables of the keys in it.
    fn word(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if is_unprintable(c) { '?' } else { c }).collect();
        let mut word = format!("'{}'", text.replace('\'', "'\\''"));
        // The longest first, because one key may be the beginning of another one.
        let mut numbered: Vec<_> = self.keys.iter().enumerate().collect();
        numbered.sort_by_key(|(_, key)| std::cmp::Reverse(key.len()));
        for (index, key) in numbered {
            word = word.replace(key.as_str(), &format!("'\"$K{}\"'", index + 1));
        }
        word
    }
}

/// True for what a terminal could take as a command.
fn is_unprintable(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

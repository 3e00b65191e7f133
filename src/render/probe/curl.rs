//! Requests as curl commands for a shell, without credentials.

use bstr::ByteSlice as _;
use url::Url;

use crate::domain::probe::{
    ProbeAction, ProbeCheck, ProbeRequest, ProbeStep, ProbeTask, ServiceTrust, UUID_PREFIX,
    is_masked_parameter,
};

/// The most bytes of a body in a command line.
const MAX_BODY: usize = 2_000;

/// The comment for a change of a record, which curl cannot make.
const FAULT: &str = "# here, --faults changes the record of this key";

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

/// The commands that make a check again.
pub(super) fn commands_of_check(task: &ProbeTask, check: &ProbeCheck) -> Vec<String> {
    commands_of_steps(&check.steps(task).unwrap_or_default())
}

/// One command for each request. The keys are variables, because a used key would only be replayed.
pub(super) fn commands_of_steps(steps: &[ProbeStep]) -> Vec<String> {
    let mut shell = ShellWords::default();
    let mut lines = Vec::new();
    for ProbeStep { requests, action } in steps {
        let Some(request) = requests.first() else { continue };
        match action {
            ProbeAction::Count | ProbeAction::TakeFaultBack => {}
            ProbeAction::Wait(time) => lines.push(format!("sleep {}", time.as_secs_f64())),
            ProbeAction::Fault(_) => lines.push(FAULT.to_owned()),
            ProbeAction::Send | ProbeAction::SendUntilFree | ProbeAction::Watch => {
                shell.send(requests, request, &mut lines);
            }
            ProbeAction::Abandon(after) => {
                // curl counts the time of the connection, too, and takes 0 for no limit.
                let seconds = after.as_secs_f64().max(0.01);
                lines.push(shell.command(request, &format!("--max-time {seconds:.3} ")));
            }
            ProbeAction::Overlap(after) | ProbeAction::FaultDuring(_, after) => {
                let command = shell.command(request, "");
                lines.push(format!("{command} & sleep {:.3}", after.as_secs_f64()));
                if let ProbeAction::FaultDuring(..) = action {
                    lines.push(FAULT.to_owned());
                }
                lines.push(format!("{command}; wait"));
            }
        }
    }
    let mut all = Vec::with_capacity(shell.keys.len() + lines.len());
    for (index, key) in shell.keys.iter().enumerate() {
        let new = match key.starts_with(UUID_PREFIX) {
            true => "$(uuidgen)",
            false => "idemctl-probe-by-hand-$(date +%s%N)",
        };
        all.push(format!("K{}={new}", index + 1));
    }
    all.extend(lines);
    all
}

/// The variables in the lines.
#[derive(Default)]
struct ShellWords {
    /// The keys, each of which is the variable `$K1`, `$K2` …
    keys: Vec<String>,
    /// The credentials, each of which is a variable.
    secrets: Vec<(String, Vec<u8>)>,
}

impl ShellWords {
    /// One request, or simultaneous ones.
    fn send(&mut self, requests: &[ProbeRequest], first: &ProbeRequest, lines: &mut Vec<String>) {
        let count = requests.len();
        if count > 1 && requests.iter().any(|request| request != first) {
            for request in requests {
                lines.push(format!("{} &", self.command(request, "")));
            }
            lines.push("wait".to_owned());
            return;
        }
        let command = self.command(first, "");
        lines.push(match count {
            1 => command,
            _ => format!("for i in $(seq {count}); do {command} & done; wait"),
        });
    }

    /// The command of one request, with these options.
    fn command(&mut self, request: &ProbeRequest, options: &str) -> String {
        if let Some(key) = &request.key
            && !self.keys.contains(key)
        {
            self.keys.push(key.clone());
        }
        let method = &request.method;
        let target = self.word(&masked_url(&request.url));
        let trust = match &request.trust {
            ServiceTrust::System => String::new(),
            ServiceTrust::Any => "-k ".to_owned(),
            ServiceTrust::File(file) => format!("--cacert {} ", self.word(file)),
        };
        let mut command = format!("curl -i {options}{trust}-X {method} {target}");
        for (name, value) in &request.headers {
            let has_key = request.key.as_ref().is_some_and(|key| value.contains_str(key));
            let header = if request.masks(name) && !has_key {
                let variable = self.variable(name, value);
                // Without its value, the request would be that of another caller.
                format!("'{name}: '\"${{{variable}:?}}\"")
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
        match printable(&request.body) {
            Some(body) => command.push_str(&format!(" --data-raw {}", self.word(body))),
            None => command.push_str(" --data-binary @BODY"),
        }
        command
    }

    /// The variable of a credential: `AUTHORIZATION`, and `AUTHORIZATION_2` for another value.
    fn variable(&mut self, name: &str, value: &[u8]) -> String {
        let is_other = |c: char| !c.is_ascii_alphanumeric();
        let name = name.to_ascii_uppercase().replace(is_other, "_");
        let secret = (name.clone(), value.to_vec());
        if !self.secrets.contains(&secret) {
            self.secrets.push(secret);
        }
        let mut of_name = self.secrets.iter().filter(|(known, _)| *known == name);
        match of_name.position(|(_, known)| known == value) {
            None | Some(0) => name,
            Some(place) => format!("{name}_{}", place + 1),
        }
    }

    /// A word for the shell, with the variables of the keys in it.
    fn word(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if is_unprintable(c) { '?' } else { c }).collect();
        let mut word = format!("'{}'", text.replace('\'', "'\\''"));
        // A terminal shows these as escapes, which a shell reads only in `$'…'`.
        word = word.replace('\t', "'$'\\t''").replace('\n', "'$'\\n''");
        for (index, key) in self.keys.iter().enumerate() {
            word = word.replace(key.as_str(), &format!("'\"$K{}\"'", index + 1));
        }
        word
    }
}

/// The body, if it can be a word in a command line.
fn printable(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    (body.len() <= MAX_BODY && !body.contains(is_unprintable)).then_some(body)
}

/// True for what a terminal could take as a command.
fn is_unprintable(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

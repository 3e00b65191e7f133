//! Requests as curl commands for a shell, without credentials.

use std::time::Duration;

use bstr::ByteSlice as _;
use url::Url;

use crate::domain::probe::{
    CheckedService, ProbeExchange, ProbeOutcome, ProbeRequest, ProbeStep, ProbeStepResult,
    RecordFault, ServiceTrust, UUID_PREFIX, is_masked_parameter,
};

/// The least characters of a key that idemctl filled up.
const LONG_KEY: usize = 200;

/// The most bytes of a body in a command line.
const MAX_BODY: usize = 2_000;

/// A URL whose secret parameters are replaced.
pub(crate) fn masked_url(text: &str) -> String {
    masked_url_except(text, None)
}

/// The same, if it shows this idempotency key, which is not secret.
fn masked_url_except(text: &str, key: Option<&str>) -> String {
    let Ok(mut url) = Url::parse(text) else { return text.to_owned() };
    let mut pairs = Vec::new();
    let mut has_secret = false;
    for (name, value) in url.query_pairs() {
        let is_key = key.is_some_and(|key| value.contains(key));
        let is_secret = is_masked_parameter(&name) && !is_key;
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
///
/// If only the number of effects shows the failure, the lines count as well.
pub(super) fn commands_of_check(checked: &CheckedService) -> Vec<String> {
    let mut shell = ShellLines::default();
    let is_together = |result: &&ProbeStepResult| result.spread_us.is_some();
    let rounds = checked.results.iter().filter(is_together).count();
    for result in &checked.results {
        if result.effects.is_some() && checked.is_shown_by_number() {
            shell.count(result);
        }
        let Some(first) = result.exchanges.first() else { continue };
        if result.spread_us.is_some() {
            shell.round(rounds);
            let requests: Vec<_> =
                result.exchanges.iter().map(|exchange| exchange.request.clone()).collect();
            shell.together(&requests);
        } else if is_overlap(&result.exchanges) {
            let second = &result.exchanges[1];
            shell.overlap(&first.request, &second.request, between(first.sent_us, second.sent_us));
        } else if first.outcome == ProbeOutcome::Abandoned {
            shell.abandon(&first.request, between(first.sent_us, first.ended_us));
        } else {
            shell.send(&first.request);
        }
    }
    shell.lines()
}

/// The commands of steps that were not made.
pub(super) fn commands_of_steps(steps: &[ProbeStep]) -> Vec<String> {
    let mut shell = ShellLines::default();
    let is_together = |step: &&ProbeStep| matches!(step, ProbeStep::Together(_));
    let rounds = steps.iter().filter(is_together).count();
    for step in steps {
        match step {
            ProbeStep::CountEffects(_) => {}
            ProbeStep::Send(request)
            | ProbeStep::SendUntilFree(request)
            | ProbeStep::Watch(request) => shell.send(request),
            ProbeStep::Together(requests) => {
                shell.round(rounds);
                shell.together(requests);
            }
            ProbeStep::Abandon(request, after) => shell.abandon(request, *after),
            ProbeStep::Overlap(first, second, after) => shell.overlap(first, second, *after),
            ProbeStep::FaultDuring(request, fault, after) => {
                shell.fault(*fault);
                shell.overlap(request, request, *after);
            }
            ProbeStep::Fault(_, fault) => shell.fault(*fault),
            ProbeStep::TakeFaultBack(_) => {}
        }
    }
    shell.lines()
}

/// The time between two times in microseconds.
fn between(first_us: Option<u64>, second_us: Option<u64>) -> Duration {
    let first = first_us.unwrap_or_default();
    Duration::from_micros(second_us.unwrap_or_default().saturating_sub(first))
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
    /// True if a body is not in the lines.
    has_file: bool,
    /// How many rounds of simultaneous requests there are in the lines.
    rounds: usize,
    lines: Vec<String>,
}

impl ShellLines {
    fn send(&mut self, request: &ProbeRequest) {
        let line = self.command(request, "");
        self.add(line);
    }

    fn abandon(&mut self, request: &ProbeRequest, after: Duration) {
        // curl counts the time of the connection, too, and takes 0 for no limit.
        let seconds = after.as_secs_f64().max(0.01);
        let line = self.command(request, &format!("--max-time {seconds:.3} "));
        self.add(line);
    }

    fn overlap(&mut self, first: &ProbeRequest, second: &ProbeRequest, after: Duration) {
        let first = self.command(first, "");
        let second = self.command(second, "");
        let seconds = after.as_secs_f64();
        self.add(format!("{first} & sleep {seconds:.3}; {second}; wait"));
    }

    /// Counts the effects as a step of the check did.
    fn count(&mut self, result: &ProbeStepResult) {
        let key = result.counted_key.as_deref().filter(|key| !key.is_empty());
        if let Some(key) = key {
            self.add_key(key);
        }
        let Some(url) = &result.counted_at else {
            // The command may contain a password.
            self.add("# count with the command of --effects".to_owned());
            return;
        };
        let target = self.word(&masked_url_except(url, key));
        self.add(format!("curl -s {target}; echo"));
    }

    /// Says which of several rounds begins. Each has a key of its own.
    fn round(&mut self, rounds: usize) {
        self.rounds += 1;
        if rounds > 1 {
            self.add(format!("# round {} of {rounds}", self.rounds));
        }
    }

    fn add_key(&mut self, key: &str) {
        if !self.keys.iter().any(|known| known == key) {
            self.keys.push(key.to_owned());
        }
    }

    /// Simultaneous requests, as a loop.
    fn together(&mut self, requests: &[ProbeRequest]) {
        let Some(first) = requests.first() else { return };
        let count = requests.len();
        if requests.iter().all(|request| request == first) {
            let command = self.command(first, "");
            self.add(format!("for i in $(seq {count}); do {command} & done; wait"));
            return;
        }
        if requests.iter().all(|request| without_key(request) == without_key(first)) {
            let command = self.command(first, "");
            let key = first.key.as_deref().unwrap_or_default();
            let number = self.keys.iter().position(|known| known == key).unwrap_or_default() + 1;
            let new = new_key(key);
            self.add(format!(
                "for i in $(seq {count}); do K{number}={new}; {command} & done; wait"
            ));
            return;
        }
        let with_body = |body: &[u8]| ProbeRequest { body: body.to_vec(), ..first.clone() };
        let differ_by_body = requests.iter().all(|request| *request == with_body(&request.body));
        if differ_by_body && requests.iter().all(|request| printable(&request.body).is_some()) {
            let command = self.command_of(first, "", Some("\"$B\""));
            let mut bodies = Vec::new();
            for request in requests {
                bodies.extend(printable(&request.body).map(|body| self.word(body)));
            }
            let bodies = bodies.join(" ");
            self.add(format!("for B in {bodies}; do {command} & done; wait"));
            return;
        }
        for request in requests {
            let command = self.command(request, "");
            self.add(format!("{command} &"));
        }
        self.add("wait".to_owned());
    }

    /// Says which fault idemctl makes, because curl cannot.
    fn fault(&mut self, fault: RecordFault) {
        self.add(format!("# {}", fault_words(fault)));
    }

    /// Adds a line, unless the one before it is the same.
    fn add(&mut self, line: String) {
        self.lines.push(line);
    }

    fn lines(self) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, key) in self.keys.iter().enumerate() {
            let number = index + 1;
            let before = index.checked_sub(1).map(|before| self.keys[before].as_str());
            // Two long keys differ only at their end.
            let is_twin = before.is_some_and(|before| {
                key.len() >= LONG_KEY && before.get(..key.len() - 1) == key.get(..key.len() - 1)
            });
            let end = key.chars().next_back().unwrap_or_default();
            lines.push(if is_twin {
                format!("K{number}=${{K{index}%?}}{end}")
            } else if key.len() >= LONG_KEY {
                let stem = key.len() - 1;
                let new = new_key(key);
                format!("K{number}=$(printf '%-{stem}s' {new} | tr ' ' x){end}")
            } else {
                format!("K{number}={}", new_key(key))
            });
        }
        if self.has_file {
            lines.push("# the file BODY holds the body of the request".to_owned());
        }
        // Several rounds repeat the same lines.
        for line in self.lines {
            let is_repeated = line.starts_with("curl") || line.starts_with("# count");
            if !lines.contains(&line) || is_repeated {
                lines.push(line);
            }
        }
        lines
    }

    fn command(&mut self, request: &ProbeRequest, options: &str) -> String {
        self.command_of(request, options, None)
    }

    /// The command, with this word for the shell in place of the body if there is one.
    fn command_of(&mut self, request: &ProbeRequest, options: &str, body: Option<&str>) -> String {
        if let Some(key) = &request.key {
            self.add_key(key);
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
        match (body, printable(&request.body)) {
            (Some(word), _) => command.push_str(&format!(" --data-raw {word}")),
            (None, Some(body)) => command.push_str(&format!(" --data-raw {}", self.word(body))),
            (None, None) => {
                self.has_file = true;
                command.push_str(" --data-binary @BODY");
            }
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
        // A terminal shows these as escapes, which a shell reads only in `$'…'`.
        word = word.replace('\t', "'$'\\t''").replace('\n', "'$'\\n''");
        // The longest first, because one key may be the beginning of another one.
        let mut numbered: Vec<_> = self.keys.iter().enumerate().collect();
        numbered.sort_by_key(|(_, key)| std::cmp::Reverse(key.len()));
        for (index, key) in numbered {
            word = word.replace(key.as_str(), &format!("'\"$K{}\"'", index + 1));
        }
        word
    }
}

/// A new key for the shell, of the same kind as this one.
fn new_key(key: &str) -> &'static str {
    match key.starts_with(UUID_PREFIX) {
        true => "$(uuidgen)",
        false => "idemctl-probe-by-hand-$(date +%s%N)",
    }
}

/// The request with nothing in place of its key.
fn without_key(request: &ProbeRequest) -> ProbeRequest {
    let key = request.key.clone().unwrap_or_default();
    if key.is_empty() {
        return request.clone();
    }
    let mut headers = request.headers.clone();
    for (_, value) in &mut headers {
        *value = value.replace(&key, "");
    }
    let url = request.url.replace(&key, "");
    let body = request.body.replace(&key, "");
    ProbeRequest { url, headers, body, key: None, ..request.clone() }
}

/// The body, if it can be a word in a command line.
fn printable(body: &[u8]) -> Option<&str> {
    let body = std::str::from_utf8(body).ok()?;
    (body.len() <= MAX_BODY && !body.contains(is_unprintable)).then_some(body)
}

/// What idemctl does to a record, in words.
fn fault_words(fault: RecordFault) -> &'static str {
    match fault {
        RecordFault::ExpireLock => "while the next request runs, idemctl lets its lock expire",
        RecordFault::DeleteLock => "while the next request runs, idemctl deletes its lock",
        RecordFault::ExpireResult => "idemctl lets the stored result expire",
        RecordFault::ReplaceResult => "idemctl replaces the stored result by an unrecognised value",
    }
}

/// True for what a terminal could take as a command.
fn is_unprintable(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || ('\u{202a}'..='\u{202e}').contains(&c)
        || ('\u{2066}'..='\u{2069}').contains(&c)
}

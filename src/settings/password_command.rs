//! The log-in that a command of the operator prints.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde::Deserialize;

use super::password::{LONGEST, only_line};
use crate::ask_program::AskProgram;
use crate::store::{Credentials, LogIn};

/// The time limit of the command, which may ask another machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the command prints, unless it is the bare password.
#[derive(Deserialize)]
struct Printed {
    username: Option<String>,
    password: String,
    /// In seconds.
    expires_in: Option<u64>,
}

/// The log-ins of a command that this `option` or field names.
pub(super) fn credentials(option: &'static str, command: &str) -> Credentials {
    let program = AskProgram { option, command: command.into(), patience: PATIENCE };
    Credentials::new(move || log_in(program.clone()).boxed())
}

/// Runs the command. No error contains what it wrote to stdout.
async fn log_in(program: AskProgram) -> Result<LogIn, String> {
    let printed = program.output(b"").await.map(|(printed, _)| printed);
    printed.and_then(parse).map_err(|why| format!("{}: {why}", program.option))
}

fn parse(printed: Vec<u8>) -> Result<LogIn, String> {
    if printed.len() as u64 > LONGEST {
        return Err("it printed more than 64 KiB".to_owned());
    }
    let Ok(text) = String::from_utf8(printed) else {
        return Err("a password is UTF-8 text".to_owned());
    };
    if !text.trim_start().starts_with('{') {
        let password = only_line(&text)?.to_owned();
        return Ok(LogIn { user: None, password, expires_in: None });
    }
    // The parser's own error may repeat the text.
    let Printed { username, password, expires_in } = serde_json::from_str(&text).map_err(|_| {
        "its JSON has to be an object with `password`, and may have `username` and `expires_in` \
        (seconds)"
    })?;
    if password.is_empty() {
        return Err("there is no password in it".to_owned());
    }
    Ok(LogIn { user: username, password, expires_in: expires_in.map(Duration::from_secs) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_a_line_or_an_object() {
        let read = |text: &str| {
            parse(text.as_bytes().to_vec())
                .map(|LogIn { user, password, expires_in }| (user, password, expires_in))
        };
        let found = |user: Option<&str>, seconds: Option<u64>| {
            let seconds = seconds.map(Duration::from_secs);
            Ok((user.map(str::to_owned), "s3cret".to_owned(), seconds))
        };
        assert_eq!(read("s3cret\n"), found(None, None));
        assert_eq!(read(r#" {"password":"s3cret"}"#), found(None, None));
        let whole = r#"{"username":"ops","password":"s3cret","expires_in":900,"kind":"token"}"#;
        assert_eq!(read(whole), found(Some("ops"), Some(900)));
        for text in [
            "",
            "\n",
            "s3cret\nmore\n",
            "{s3cret",
            r#"{"username":"s3cret"}"#,
            r#"{"password":""}"#,
            r#"{"password":"p","expires_in":"s3cret"}"#,
            &"s3cret".repeat(11_000),
        ] {
            let why = read(text).unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
        }
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up() {
        let patience = Duration::from_millis(50);
        let command = "echo s3cret; exec sleep 60".into();
        let program = AskProgram { option: "--password-command", command, patience };
        let why = log_in(program).await.err().unwrap();
        assert_eq!(why, "--password-command: no answer within 50ms");
    }
}

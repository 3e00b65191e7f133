//! The log-in at the server and at its Sentinels, each from the nearest source.

use std::path::PathBuf;

use super::config::ContextConfig;
use super::environment::Environment;
use super::origin::{Origin, Sourced, pick};
use super::password;
use super::url::Url;
use crate::args::ConnectionArgs;
use crate::domain::secret::Secret;
use crate::exit::CommandError;

#[derive(Debug, Clone)]
pub(super) struct SentinelLogin {
    pub(crate) user: Sourced<Option<String>>,
    pub(crate) password: Sourced<Option<Secret>>,
}

pub(super) fn user(
    args: &ConnectionArgs,
    context: &ContextConfig,
    url: Option<&Url>,
) -> Sourced<Option<String>> {
    match url {
        _ if args.user.is_some() => Sourced::new(args.user.clone(), Origin::Flag("--user")),
        Some(url)
            if url.target.user.is_some() && (!url.is_of_context() || context.user.is_none()) =>
        {
            Sourced::new(url.target.user.clone(), url.origin)
        }
        _ => pick(None, "", context.user.clone(), "user"),
    }
}

/// The password, from the nearest source.
///
/// # Errors
/// Usage: a file cannot be read, or contains no password.
pub(super) fn password(
    args: &ConnectionArgs,
    environment: &Environment,
    context: &ContextConfig,
    url: Option<&Url>,
    warnings: &mut Vec<String>,
) -> Result<Sourced<Option<Secret>>, CommandError> {
    let mut in_url = None;
    if let Some(url) = url
        && let Some(password) = &url.target.password
    {
        in_url = Some((Secret::from(password.as_str()), url.origin));
        if matches!(url.origin, Origin::Flag(_)) && !args.no_auth_warning {
            warnings.push(in_process_list("--url"));
        }
    }
    if let Some(password) = &args.password {
        if !args.no_auth_warning {
            warnings.push(in_process_list("-a"));
        }
        return Ok(found(password.clone(), Origin::Flag("--pass")));
    }
    // The password is asked for when idemctl connects, so no other source may provide one.
    if args.askpass {
        return Ok(Sourced::new(None, Origin::Flag("--askpass")));
    }
    // The command runs when idemctl connects.
    if args.password_command.is_some() {
        return Ok(Sourced::new(None, Origin::Flag("--password-command")));
    }
    let (file, from, origin) = match (&args.pass_file, &context.password_file) {
        (Some(file), _) => (Some(file), "--pass-file", Origin::Flag("--pass-file")),
        (None, file) => {
            (file.as_ref(), "the context's password_file", Origin::Context("password_file"))
        }
    };
    // A file that the command line names comes before every variable and the context.
    if args.pass_file.is_some() {
        return in_file(file, from, origin, warnings);
    }
    // The password in the context's own URL comes last, because the other fields of the context
    // override its URL.
    match (in_url, environment.get("REDISCLI_AUTH"), &context.password) {
        (Some((password, origin)), ..) if !matches!(origin, Origin::Context(_)) => {
            Ok(found(password, origin))
        }
        (_, Some(password), _) => {
            Ok(found(Secret::from(password), Origin::Variable("REDISCLI_AUTH")))
        }
        (_, None, Some(password)) => Ok(found(password.clone(), Origin::Context("password"))),
        _ if context.password_command.is_some() => {
            Ok(Sourced::new(None, Origin::Context("password_command")))
        }
        (Some((password, origin)), ..) if file.is_none() => Ok(found(password, origin)),
        _ => in_file(file, from, origin, warnings),
    }
}

fn found(password: Secret, origin: Origin) -> Sourced<Option<Secret>> {
    Sourced::new(Some(password), origin)
}

/// The warning about a password in an option.
fn in_process_list(flag: &str) -> String {
    format!(
        "{flag}: a password on the command line is in the process list; \
        --askpass, --pass-file and REDISCLI_AUTH are not"
    )
}

/// The log-in at the Sentinels. It is independent of the log-in at the servers and its sources.
///
/// # Errors
/// Usage: a file cannot be read, or contains no password; there is a Redis user without a password.
pub(super) fn at_sentinels(
    args: &ConnectionArgs,
    environment: &Environment,
    context: &ContextConfig,
    warnings: &mut Vec<String>,
) -> Result<SentinelLogin, CommandError> {
    let of_context = &context.sentinel;
    let user = pick(
        args.sentinel_user.clone(),
        "--sentinel-user",
        of_context.user.clone(),
        "sentinel.user",
    );
    let variable = environment.get("IDEMCTL_SENTINEL_AUTH");
    let password = match (&args.sentinel_pass_file, variable, &of_context.password) {
        (Some(file), ..) => {
            let flag = "--sentinel-pass-file";
            in_file(Some(file), flag, Origin::Flag(flag), warnings)?
        }
        (None, Some(password), _) => {
            Sourced::new(Some(Secret::from(password)), Origin::Variable("IDEMCTL_SENTINEL_AUTH"))
        }
        (None, None, Some(password)) => {
            Sourced::new(Some(password.clone()), Origin::Context("sentinel.password"))
        }
        (None, None, None) => {
            let origin = Origin::Context("sentinel.password_file");
            let file = of_context.password_file.as_ref();
            in_file(file, "the context's sentinel.password_file", origin, warnings)?
        }
    };
    if user.value.is_some() && password.value.is_none() {
        return Err(CommandError::usage(
            "a user at the Sentinels needs a password: without one they ignore the user",
        )
        .hint("give it with --sentinel-pass-file or IDEMCTL_SENTINEL_AUTH"));
    }
    Ok(SentinelLogin { user, password })
}

fn in_file(
    file: Option<&PathBuf>,
    from: &str,
    origin: Origin,
    warnings: &mut Vec<String>,
) -> Result<Sourced<Option<Secret>>, CommandError> {
    let Some(file) = file else { return Ok(Sourced::default(None)) };
    let (password, warning) = password::from_file(file, from)?;
    warnings.extend(warning);
    Ok(Sourced::new(Some(password), origin))
}

//! The operator's request, from options as in curl.

use std::path::Path;

use url::Url;

use super::options::Args;
use crate::domain::probe::{
    KEY_MARK, KeyPlace, ProbeProfile, ProbeRequest, RequestTemplate, ServiceTrust,
};
use crate::exit::CommandError;
use crate::files;
use crate::render::escape;

/// Larger than any request that is sent hundreds of times.
const LARGEST: u64 = 4 << 20;

/// The request of the options.
///
/// # Errors
/// Usage: a file cannot be read, or a line is not a header.
pub(super) fn template(
    args: &Args,
    profile: &ProbeProfile,
) -> Result<RequestTemplate, CommandError> {
    let trust = match &args.http_cacert {
        _ if args.http_insecure => ServiceTrust::Any,
        Some(file) => ServiceTrust::File(file.display().to_string()),
        None => ServiceTrust::System,
    };
    let mut template = RequestTemplate {
        method: args.method.clone(),
        url: args.target.clone().unwrap_or_default(),
        headers: Vec::new(),
        body: Vec::new(),
        place: KeyPlace::Mark,
        form: profile.form(),
        caller_header: None,
        trust,
    };
    if let Some(given) = &args.data {
        template.body = data("--data", given)?;
    }
    for given in &args.headers {
        match given.strip_prefix('@') {
            Some(file) => {
                let text = files::read_text(Path::new(file), LARGEST)
                    .map_err(|error| unreadable("--header", file, &error))?;
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    template.headers.push(header("--header", line)?);
                }
            }
            None => template.headers.push(header("--header", given)?),
        }
    }
    // A fragment is never sent.
    if let Some((url, _)) = template.url.split_once('#') {
        template.url = url.to_owned();
    }
    // Other payloads have other lengths, so the length is that of each request.
    template.headers.retain(|(name, _)| {
        !["content-length", "transfer-encoding"].contains(&name.to_ascii_lowercase().as_str())
    });
    template.place = place(args, profile, &template);
    Ok(template)
}

/// Where the key belongs: as an option says, or in `{{key}}` alone if the body or the URL has it and
/// no header does, or as the profile says.
fn place(args: &Args, profile: &ProbeProfile, template: &RequestTemplate) -> KeyPlace {
    if let Some(name) = &args.key_header {
        return KeyPlace::Header(name.clone());
    }
    if let Some(pointer) = &args.key_field {
        return KeyPlace::Field(pointer.clone());
    }
    if let Some(name) = &args.key_parameter {
        return KeyPlace::Parameter(name.clone());
    }
    // A header with nothing but the key is its place, whatever its name.
    for (name, value) in &template.headers {
        let text = String::from_utf8_lossy(value);
        if text.trim().trim_matches('"') == "{{key}}" {
            return KeyPlace::Header(name.clone());
        }
    }
    match (&profile.key.header, &profile.key.field) {
        (Some(name), _) => KeyPlace::Header(name.clone()),
        (None, Some(pointer)) => KeyPlace::Field(pointer.clone()),
        (None, None) => KeyPlace::Mark,
    }
}

/// The text of an option, or of the file after `@`.
///
/// # Errors
/// Usage: the file cannot be read.
pub(super) fn data(option: &str, given: &str) -> Result<Vec<u8>, CommandError> {
    match given.strip_prefix('@') {
        Some(file) => files::read_or_receive(Path::new(file), LARGEST)
            .map_err(|error| unreadable(option, file, &error)),
        None => Ok(given.as_bytes().to_vec()),
    }
}

/// One header line, or the first line of the file after `@`.
///
/// # Errors
/// Usage: it is not a header line.
pub(super) fn one_header(option: &str, given: &str) -> Result<(String, Vec<u8>), CommandError> {
    let Some(file) = given.strip_prefix('@') else { return header(option, given) };
    let text = files::read_text(Path::new(file), LARGEST)
        .map_err(|error| unreadable(option, file, &error))?;
    header(option, text.lines().next().unwrap_or_default())
}

/// The header of another caller.
///
/// # Errors
/// Usage: it is not a header line, or it names the same caller.
pub(super) fn other_caller(
    given: &str,
    template: &RequestTemplate,
) -> Result<(String, Vec<u8>), CommandError> {
    let (name, value) = one_header("--as", given)?;
    for (known, own) in &template.headers {
        if known.eq_ignore_ascii_case(&name) && *own == value {
            return Err(CommandError::usage("--as names the caller that -H names already"));
        }
    }
    Ok((name, value))
}

fn header(option: &str, line: &str) -> Result<(String, Vec<u8>), CommandError> {
    // The line may be a secret, so the error does not repeat it.
    let wrong = || CommandError::usage(format!("{option}: write a header as 'Name: value'"));
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = name.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(wrong());
    }
    Ok((name.to_owned(), value.trim().as_bytes().to_vec()))
}

/// Refuses a request that cannot be sent.
///
/// # Errors
/// Usage: the URL or the method is not valid.
pub(super) fn check(request: &ProbeRequest) -> Result<(), CommandError> {
    check_url(&request.url, "the URL")?;
    crate::http::check(request).map_err(CommandError::usage)
}

/// Refuses a URL that cannot be requested, or that contains a password. `what` names it, because it
/// is not printed.
///
/// # Errors
/// Usage: it is not valid.
pub(super) fn check_url(url: &str, what: &str) -> Result<(), CommandError> {
    let url = Url::parse(url)
        .map_err(|why| CommandError::usage(format!("{what} is not valid: {why}")))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(CommandError::usage(format!("{what} must begin with http:// or https://")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CommandError::usage(format!("{what} contains a user name or a password"))
            .hint(
                "pass them as a header from a file (-H @FILE), or count effects with a command",
            ));
    }
    Ok(())
}

/// Refuses a path of --other-path that is the one of the request, or more than a path.
/// `request` has a key.
///
/// # Errors
/// A usage error if it is not another path.
pub(super) fn check_path(path: &str, request: &ProbeRequest) -> Result<(), CommandError> {
    let is_path = path.starts_with('/') && !path.starts_with("//");
    let has_more = path.contains(['?', '#', '\\']) || path.contains(|c: char| c.is_control());
    if !is_path || has_more {
        return Err(CommandError::usage("--other-path must be a path such as /refunds"));
    }
    let url = Url::parse(&request.url).map_err(|why| CommandError::usage(format!("URL: {why}")))?;
    let key = request.key.as_deref().unwrap_or_default();
    let mut other = url.clone();
    other.set_path(&path.replace(KEY_MARK, key));
    if other == url {
        return Err(CommandError::usage("--other-path is the path of the request"));
    }
    Ok(())
}

fn unreadable(option: &str, file: &str, error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("{option}: cannot read {}: {error}", escape::text(file.as_bytes())))
}

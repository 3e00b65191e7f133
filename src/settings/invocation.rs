//! The options that lead to this run's server, for every command line that idemctl prints.

use std::path::{Path, PathBuf};

use super::Environment;
use crate::args::{ConnectionArgs, SchemaArgs};
use crate::render::invocation::Invocation;

impl Invocation {
    /// The options that select the server and the way to reach it. idemctl's own variables become
    /// options, because a variable may have been set for one command only (`IDEMCTL_URL=…
    /// idemctl`), and the printed command would then reach another server. The default context
    /// needs no option. A password is replaced by a prompt.
    pub(crate) fn of(args: &ConnectionArgs, environment: &Environment) -> Self {
        // Each of these options has precedence over the variable with a URL.
        let is_named = args.url.is_some()
            || args.host.is_some()
            || args.port.is_some()
            || args.socket.is_some()
            || args.sentinel.is_some()
            || args.context.is_some();
        let mut url = args.url.as_deref();
        let mut context = args.context.as_deref();
        // A temporary local Redis is used whatever the variables name.
        if !args.sandbox {
            if !is_named {
                url = environment.get("IDEMCTL_URL");
            }
            context = context.or(environment.get("IDEMCTL_CONTEXT"));
        }
        let (url, has_password) = match url {
            Some(url) => without_password(url),
            None => (None, false),
        };
        let config = args.config.clone().or_else(|| environment.config());
        // A password from stdin cannot be read again, so the printed command asks for it.
        let is_on_stdin = args.pass_file.as_deref() == Some(Path::new("-"));
        let pass_file = args.pass_file.as_ref().filter(|_| !is_on_stdin);
        let asks = args.askpass || args.password.is_some() || has_password || is_on_stdin;
        let tls = &args.tls;
        let mut invocation = Self::default();
        for (name, value) in [
            ("--config", shown(config.as_ref())),
            ("--context", context.map(str::to_owned)),
            ("-u", url),
            ("-h", args.host.clone()),
            ("-p", args.port.map(|port| port.to_string())),
            ("-s", shown(args.socket.as_ref())),
            ("--sentinel", args.sentinel.clone()),
            ("--master-name", args.master_name.clone()),
            ("--sentinel-user", args.sentinel_user.clone()),
            ("--sentinel-pass-file", shown(args.sentinel_pass_file.as_ref())),
            ("-n", args.db.map(|db| db.to_string())),
            ("--user", args.user.clone()),
            ("--pass-file", shown(pass_file)),
            ("--password-command", args.password_command.clone()),
            ("--cacert", shown(tls.cacert.as_ref())),
            ("--cacertdir", shown(tls.cacertdir.as_ref())),
            ("--cert", shown(tls.cert.as_ref())),
            ("--key", shown(tls.key.as_ref())),
            ("--sni", tls.sni.clone()),
        ] {
            invocation.option(name, value);
        }
        for (name, is_set) in [
            ("-c", args.cluster),
            ("--sandbox", args.sandbox),
            ("--askpass", asks),
            ("--tls", tls.tls),
            ("--insecure", tls.insecure),
        ] {
            invocation.flag(name, is_set);
        }
        invocation
    }

    /// Adds the URL that `REDIS_URL` names. Whether this variable applies is known only after the
    /// config file was read.
    pub(crate) fn note_redis_url(&mut self, url: &str) {
        let (url, has_password) = without_password(url);
        self.option("-u", url);
        self.flag("--askpass", has_password);
    }

    /// Adds the options for the schema folder and for the prefix of the named schema. `folder` is
    /// the folder that a variable names.
    pub(crate) fn note_schemas(&mut self, args: &SchemaArgs, folder: Option<PathBuf>) {
        let prefix = match (args.schema.as_slice(), &args.prefix) {
            ([schema], Some(prefix)) => Some((schema.as_str(), prefix.as_str())),
            _ => None,
        };
        let folder = args.folder.schema_dir.clone().or(folder);
        self.set_schemas(shown(folder.as_ref()), prefix);
    }
}

fn shown(path: Option<&PathBuf>) -> Option<String> {
    Some(path?.display().to_string())
}

/// The URL without its password, and whether it had one.
fn without_password(url: &str) -> (Option<String>, bool) {
    for scheme in ["redis-sentinel://", "rediss-sentinel://"] {
        let Some(rest) = url.strip_prefix(scheme) else { continue };
        let Some((login, hosts)) = rest.rsplit_once('@') else {
            return (Some(url.to_owned()), false);
        };
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let at = if user.is_empty() { "" } else { "@" };
        return (Some(format!("{scheme}{user}{at}{hosts}")), !password.is_empty());
    }
    let Some(mut parsed) = redis::parse_redis_url(url) else { return (None, false) };
    let mut has_password = parsed.password().is_some();
    // This fails only for a URL without a host, which cannot have a password there.
    let _ = parsed.set_password(None);
    let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
    // The URL of a unix socket has its password in the query.
    if pairs.iter().any(|(name, _)| name == "pass") {
        has_password = true;
        parsed
            .query_pairs_mut()
            .clear()
            .extend_pairs(pairs.iter().filter(|(name, _)| name != "pass"));
    }
    if parsed.query() == Some("") {
        parsed.set_query(None);
    }
    (Some(parsed.to_string()), has_password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_printed_without_its_password() {
        for (url, printed, has_password) in [
            ("redis://h:1/2", "redis://h:1/2", false),
            ("redis://ann:s3cret@h:1/2", "redis://ann@h:1/2", true),
            ("rediss://:s3cret@h:1#insecure", "rediss://h:1#insecure", true),
            ("unix:///run/s?db=1&user=ann&pass=s3cret", "unix:///run/s?db=1&user=ann", true),
            ("unix:///run/s?pass=s3cret", "unix:///run/s", true),
            (
                "redis-sentinel://ann:s3@cret@a:1,b:2/main",
                "redis-sentinel://ann@a:1,b:2/main",
                true,
            ),
            ("redis-sentinel://a:1/main", "redis-sentinel://a:1/main", false),
        ] {
            assert_eq!(without_password(url), (Some(printed.to_owned()), has_password), "{url}");
        }
    }

    #[test]
    fn what_was_named_is_named_again_and_a_password_is_asked_for() {
        let none = Environment::default();
        let args = ConnectionArgs {
            url: Some("redis://:s3cret@h:1".to_owned()),
            config: Some(PathBuf::from("my config")),
            ..ConnectionArgs::default()
        };
        let line = Invocation::of(&args, &none).command_line(["list"]);
        assert_eq!(line, "idemctl --config 'my config' -u redis://h:1 --askpass list");
        assert_eq!(
            Invocation::of(&ConnectionArgs::default(), &none).command_line(["list"]),
            "idemctl list"
        );
    }
}

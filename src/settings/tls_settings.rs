//! The TLS settings, each from the nearest source.

use std::path::PathBuf;

use super::config::{ContextConfig, TlsTable};
use super::file::{chmod, others_can_read};
use super::origin::{Origin, Sourced, pick};
use super::url::Url;
use crate::args::TlsArgs;
use crate::exit::CommandError;
use crate::store::{Address, Tls, TlsOptions};

#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub(crate) cacert: Sourced<Option<PathBuf>>,
    pub(crate) cacertdir: Sourced<Option<PathBuf>>,
    pub(crate) cert: Sourced<Option<PathBuf>>,
    pub(crate) key: Sourced<Option<PathBuf>>,
    pub(crate) sni: Sourced<Option<String>>,
    pub(crate) insecure: Sourced<bool>,
}

impl TlsSettings {
    /// Combines the settings; `None` if no source requests TLS.
    ///
    /// # Errors
    /// Usage: the settings contradict each other, or have no effect.
    pub(super) fn resolve(
        args: &TlsArgs,
        context: &ContextConfig,
        url: Option<&Url>,
        address: &Address,
    ) -> Result<Sourced<Option<Self>>, CommandError> {
        let of_url = url.and_then(|url| Some((url.target.tls.as_ref()?, url.origin)));
        let origin = match (args.tls, &of_url, context.tls.on) {
            (true, ..) => Origin::Flag("--tls"),
            (_, Some(_), Some(false)) => {
                return Err(CommandError::usage(
                    "the context's url says TLS (rediss://), and `tls = false`",
                ));
            }
            (_, Some((_, origin)), _) => *origin,
            (_, None, Some(true)) => Origin::Context("tls"),
            (_, None, on) => return without(args, on),
        };
        // Ignoring the option would suggest an encrypted connection.
        if matches!(address, Address::Unix(_)) {
            return Err(CommandError::usage("TLS goes over TCP: a unix socket has no use for it"));
        }
        let tls = Self::nearest(args, &context.tls.how, of_url);
        if tls.cert.value.is_some() != tls.key.value.is_some() {
            let (has, lacks) =
                if tls.cert.value.is_some() { ("--cert", "--key") } else { ("--key", "--cert") };
            let why = "a client shows its certificate and proves it with the key";
            return Err(CommandError::usage(format!("{has} needs {lacks}: {why}")));
        }
        Ok(Sourced::new(Some(tls), origin))
    }

    fn nearest(args: &TlsArgs, how: &TlsTable, of_url: Option<(&Tls, Origin)>) -> Self {
        let insecure = match of_url {
            _ if args.insecure => Sourced::new(true, Origin::Flag("--insecure")),
            // `#insecure` at the end of a URL.
            Some((tls, origin)) if tls.options().insecure => Sourced::new(true, origin),
            _ => pick(None, "", how.insecure, "tls.insecure").or(false),
        };
        Self {
            cacert: pick(args.cacert.clone(), "--cacert", how.cacert.clone(), "tls.cacert"),
            cacertdir: pick(
                args.cacertdir.clone(),
                "--cacertdir",
                how.cacertdir.clone(),
                "tls.cacertdir",
            ),
            cert: pick(args.cert.clone(), "--cert", how.cert.clone(), "tls.cert"),
            key: pick(args.key.clone(), "--key", how.key.clone(), "tls.key"),
            sni: pick(args.sni.clone(), "--sni", how.sni.clone(), "tls.sni"),
            insecure,
        }
    }

    /// Warnings about the settings, for stderr.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.insecure.value {
            warnings.push(
                "insecure: the server's certificate is not checked; whoever is on the way can \
                 read and change everything, the password too"
                    .to_owned(),
            );
        }
        if let Some(key) = self.key.value.as_deref()
            && others_can_read(key)
        {
            let chmod = chmod(key);
            let key = key.display();
            warnings.push(format!("{key} is a private key and can be read by others: {chmod}"));
        }
        warnings
    }

    pub(super) fn options(&self) -> TlsOptions {
        TlsOptions {
            cacert: self.cacert.value.clone(),
            cacertdir: self.cacertdir.value.clone(),
            cert: self.cert.value.clone(),
            key: self.key.value.clone(),
            insecure: self.insecure.value,
            sni: self.sni.value.clone(),
        }
    }
}

/// No TLS, unless an option for TLS contradicts that.
fn without(args: &TlsArgs, on: Option<bool>) -> Result<Sourced<Option<TlsSettings>>, CommandError> {
    if let Some(name) = args.named() {
        let why = format!("{name} is for TLS, which nothing asks for");
        return Err(CommandError::usage(why).hint("--tls, or a rediss:// URL"));
    }
    let origin = if on.is_some() { Origin::Context("tls") } else { Origin::Default };
    Ok(Sourced::new(None, origin))
}

//! The URL that names the server, from the nearest source.

use super::config::ContextConfig;
use super::environment::Environment;
use super::origin::Origin;
use crate::args::ConnectionArgs;
use crate::exit::CommandError;
use crate::store::{NO_URL, Target};

pub(super) struct Url {
    pub(crate) target: Target,
    pub(crate) origin: Origin,
}

impl Url {
    /// The URL of the nearest source; `None` if no source has one, or if an option names the server
    /// in another way.
    ///
    /// # Errors
    /// Usage: a URL cannot be read.
    pub(super) fn nearest(
        args: &ConnectionArgs,
        environment: &Environment,
        context: &ContextConfig,
    ) -> Result<Option<Self>, CommandError> {
        let is_addressed = args.host.is_some() || args.port.is_some() || args.socket.is_some();
        let (url, origin) = if let Some(url) = &args.url {
            (url.clone(), Origin::Flag("--url"))
        } else if let Some(sentinels) = &args.sentinel
            && let Some(service) = &args.master_name
        {
            (format!("redis-sentinel://{sentinels}/{service}"), Origin::Flag("--sentinel"))
        // A host, port or socket names the server without a URL.
        } else if is_addressed {
            return Ok(None);
        } else if args.context.is_some()
            && let Some(url) = &context.url
        {
            // A context that the command line names has precedence over the variable.
            (url.clone(), Origin::Context("url"))
        } else if let Some(url) = environment.get("IDEMCTL_URL") {
            (url.to_owned(), Origin::Variable("IDEMCTL_URL"))
        } else if let Some(url) = &context.url {
            (url.clone(), Origin::Context("url"))
        } else if let Some(url) = environment.get("REDIS_URL") {
            // Other programs use this variable too, so idemctl's own settings come first.
            (url.to_owned(), Origin::Variable("REDIS_URL"))
        } else {
            return Ok(None);
        };
        let from = match origin {
            Origin::Flag(name) | Origin::Variable(name) => name,
            _ => "the context's url",
        };
        let target =
            Target::parse(&url).ok_or_else(|| CommandError::usage(format!("{from}: {NO_URL}")))?;
        Ok(Some(Self { target, origin }))
    }

    pub(super) fn is_of_context(&self) -> bool {
        matches!(self.origin, Origin::Context(_))
    }
}

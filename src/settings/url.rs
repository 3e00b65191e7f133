//! The URL that names the server, from the nearest source.

use super::config::ContextConfig;
use super::environment::Environment;
use super::origin::Origin;
use crate::args::ConnectionArgs;
use crate::exit::CommandError;
use crate::store::Target;

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
        let addressed = args.host.is_some() || args.port.is_some() || args.socket.is_some();
        let of_context = || context.url.clone().map(|url| (url, Origin::Context("url")));
        let of_variable = |name: &'static str| {
            environment.get(name).map(|url| (url.to_owned(), Origin::Variable(name)))
        };
        let url = match (&args.url, args.sentinel.as_ref().zip(args.master_name.as_ref())) {
            (Some(url), _) => Some((url.clone(), Origin::Flag("--url"))),
            (None, Some((sentinels, service))) => Some((
                format!("redis-sentinel://{sentinels}/{service}"),
                Origin::Flag("--sentinel"),
            )),
            _ if addressed => None,
            _ if args.context.is_some() && context.url.is_some() => of_context(),
            _ => {
                of_variable("IDEMCTL_URL").or_else(of_context).or_else(|| of_variable("REDIS_URL"))
            }
        };
        let Some((url, origin)) = url else { return Ok(None) };
        let from = match origin {
            Origin::Flag(name) | Origin::Variable(name) => name,
            _ => "the context's url",
        };
        let target =
            Target::parse(&url).map_err(|why| CommandError::usage(format!("{from}: {why}")))?;
        Ok(Some(Self { target, origin }))
    }

    pub(super) fn is_of_context(&self) -> bool {
        matches!(self.origin, Origin::Context(_))
    }
}

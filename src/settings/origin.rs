//! The source of a setting.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag, e.g. `--url`.
    Flag(&'static str),
    /// A variable, e.g. `IDEMCTL_URL`.
    Variable(&'static str),
    /// A field of the chosen context, e.g. `tls.cacert`.
    Context(&'static str),
    /// A field at the top of the config file.
    File(&'static str),
    /// The server's address, from a context of the config file.
    Address,
    /// idemctl's default, if no source has the setting.
    Default,
}

#[derive(Debug, Clone)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

impl<T> Sourced<T> {
    pub(crate) fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    pub(crate) fn default(value: T) -> Self {
        Self::new(value, Origin::Default)
    }
}

/// The flag's value if there is one, or else the context's field.
pub(super) fn pick<T>(
    flag: Option<T>,
    name: &'static str,
    context: Option<T>,
    field: &'static str,
) -> Sourced<Option<T>> {
    match (flag, context) {
        (Some(value), _) => Sourced::new(Some(value), Origin::Flag(name)),
        (None, Some(value)) => Sourced::new(Some(value), Origin::Context(field)),
        (None, None) => Sourced::default(None),
    }
}

impl<T> Sourced<Option<T>> {
    pub(super) fn or(self, default: T) -> Sourced<T> {
        match self.value {
            Some(value) => Sourced::new(value, self.origin),
            None => Sourced::default(default),
        }
    }
}

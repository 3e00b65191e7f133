//! The kinds of sensitive data that are looked for.

/// A kind of sensitive data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SensitiveKind {
    CardNumber,
    PrivateKey,
    /// A key of a provider, with what it is.
    ProviderKey(&'static str),
    Jwt,
    /// The credentials of an Authorization header, or an access token.
    Bearer,
    Password,
    Cookie,
    /// The code on a card that proves its possession.
    CardCode,
    Iban,
    Email,
}

impl SensitiveKind {
    /// Its name for people, for one of them.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::CardNumber => "card number",
            Self::PrivateKey => "private key",
            Self::ProviderKey(label) => label,
            Self::Jwt => "JSON web token",
            Self::Bearer => "token or key",
            Self::Password => "password",
            Self::CardCode => "card verification code",
            Self::Cookie => "cookie",
            Self::Iban => "IBAN",
            Self::Email => "e-mail address",
        }
    }

    /// Its name for people, for several of them.
    pub(crate) fn plural(self) -> String {
        match self {
            Self::Bearer => "tokens or keys".to_owned(),
            Self::Email => "e-mail addresses".to_owned(),
            other => format!("{}s", other.noun()),
        }
    }
}

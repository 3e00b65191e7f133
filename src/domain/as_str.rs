//! The stable words of enums: what `schema.toml`, the JSON documents and the messages call a variant.

/// Gives enums that derive [`strum::IntoStaticStr`] the method `as_str`.
macro_rules! as_str {
    ($($name:ty),+) => {
        $(impl $name {
            /// The stable word for the variant.
            pub fn as_str(&self) -> &'static str {
                self.into()
            }
        })+
    };
}

pub(crate) use as_str;

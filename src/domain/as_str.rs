//! Stable words for enum variants, as `schema.toml`, the JSON documents and the messages write
//! them.

/// Adds the method `as_str` to enums that derive [`strum::IntoStaticStr`].
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

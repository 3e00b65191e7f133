//! Drafts a schema from sample records. The draft contains what the samples show, and marks what a
//! person must decide.

mod case;
mod fields;
mod sample;
mod states;
mod toml_text;

pub(crate) use states::representatives;
pub(crate) use toml_text::{DECIDE, DRAFT, draft};

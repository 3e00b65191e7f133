//! Drafts a schema from sample records. The draft contains what the samples show, and marks what a
//! person must decide.

mod formats;
mod sample;
mod toml_text;

pub(crate) use sample::representatives;
pub(crate) use toml_text::{DECIDE, DRAFT, draft};

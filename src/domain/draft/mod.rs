//! A schema to start from, drafted from sample records: what they show is written down, what a person has to know is marked.

mod case;
mod fields;
mod sample;
mod states;
mod toml_text;

pub(crate) use states::representatives;
pub(crate) use toml_text::{DECIDE, DRAFT, draft};

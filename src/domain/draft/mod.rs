//! A schema to start from, drafted from sample records: what they show is written down, what a person has to know is marked.

mod case;
mod common_template;
mod fields;
mod representatives;
mod sample;
mod states;
mod toml_text;
mod unwrap;

pub(crate) use representatives::representatives;
pub(crate) use toml_text::{DECIDE, DRAFT, draft};

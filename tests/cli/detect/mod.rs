//! `idemctl detect`: every built-in schema is named under its own and another prefix, nothing else is named, and what was not
//! read is said.

mod limits;
mod named;
mod nobodys;
mod records;

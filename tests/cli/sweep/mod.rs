//! `idemctl sweep` from the outside.

mod orphans;
mod owners;

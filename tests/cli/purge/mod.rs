//! `idemctl purge` from the outside.

mod choice;
mod ending;
mod keys;
mod unproven;

//! `idemctl restore`, and the backups it reads.

mod apart;
mod beside;
mod command;
mod damage;
mod moment;
mod place;

//! Workers that execute a service's steps on a real server.

mod claims;
mod completable;
pub(crate) mod exploration;
mod race;
mod rehearsal;
pub mod seed;
mod service;
pub(crate) mod simulate;
mod stopped_clock;
mod test_keys;
mod trial;
mod tried_schema;
mod ttls;

pub(crate) use self::race::{Connections, NotConnected, RaceEnd, RaceResult, race};
pub(crate) use self::rehearsal::{
    NotRehearsed, Rehearsal, RehearsalServer, RehearsedAnswer, rehearse,
};
pub(crate) use self::test_keys::TEST_KEYS_LIVE;
pub(crate) use self::tried_schema::try_schema;

//! Statistics on the records of a server: number, size, age and remaining time.

mod by;
mod histogram;
mod row;
mod stats;

pub(crate) use self::by::StatsDimension;
pub(crate) use self::histogram::{BOUNDS, Histogram};
pub(crate) use self::row::StatsRow;
pub(crate) use self::stats::{Stats, StatsGroup};

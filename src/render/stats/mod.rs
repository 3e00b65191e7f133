//! Statistics on records: for people, as JSON, as rows of fields, and for Prometheus.

mod prometheus;
mod stats_json;
mod stats_rows;
mod stats_table;

pub use self::prometheus::{Run, down, exposition};
pub use self::stats_json::rows;
pub use self::stats_rows::separated;
pub use self::stats_table::text;

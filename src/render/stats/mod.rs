//! Figures on records: for people, as JSON, and for Prometheus.

mod prometheus;
mod stats_json;
mod stats_table;

pub use self::prometheus::exposition;
pub use self::stats_json::rows;
pub use self::stats_table::text;

//! Reading: one record, a page of a scan, a whole keyspace. Nothing in this room changes a record.

pub(crate) mod cursor;
pub(crate) mod gaps;
pub(crate) mod held;
pub(crate) mod keyspace_scan;
pub(crate) mod look;
pub(crate) mod observed;
pub(crate) mod page_size;
pub(crate) mod peek;
mod peek_fields;
mod read_many;
pub(crate) mod reader;
pub(crate) mod reads;
pub mod records;
pub(crate) mod sampled_node;
pub(crate) mod sampler;
pub(crate) mod scan_nodes;
pub(crate) mod scan_page;
mod small_hashes;

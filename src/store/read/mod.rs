//! Reads a single record, a page of a scan, or the whole keyspace. Nothing in this module changes a
//! record.

pub(crate) mod cursor;
pub(crate) mod for_change;
pub(crate) mod gaps;
pub(crate) mod key_count;
pub(crate) mod key_query;
pub(crate) mod keyspace_scan;
mod learned_heads;
pub mod lookup;
pub(crate) mod page_size;
mod plain_reads;
pub(crate) mod reader;
pub(crate) mod sampled_node;
pub(crate) mod sampler;
pub(crate) mod scan_nodes;
pub(crate) mod scan_page;
pub(crate) mod script_reply;
mod small_hashes;

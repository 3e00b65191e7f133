//! What `format = 2` of schema.toml can say: codecs, hashes and sets, keys of other shapes.

mod codecs;
mod described;
mod endless;
mod hashes;
mod key_shapes;
mod many_hashes;
mod one_header;

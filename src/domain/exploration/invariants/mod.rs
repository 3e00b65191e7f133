//! What must hold whatever happens: an invariant a file.

mod all;
mod invariant;
mod lock_ends;
mod no_false_done;
mod one_effect;
mod owner_only;
mod payloads_apart;
mod replays_after_success;
mod result_kept;
mod result_not_replaced;
#[cfg(test)]
mod samples;
mod true_replay;

pub(crate) use all::ALL;
pub use invariant::Invariant;

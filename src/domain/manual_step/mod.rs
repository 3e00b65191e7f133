//! Steps that an operator executes in a worker's place: which records they apply to, and what they
//! do.

mod begin;
mod complete;
mod delivery;
mod loss;
mod lost_reply;
mod predict;
mod release;
mod response_input;

pub(crate) use self::begin::{
    may_lack_fingerprint, may_take_lock, why_overwrites, why_unpredicted,
};
pub(crate) use self::complete::{
    Completion, NotExecutable, Overrides, check_begun_lock, completion_of, lock_for_step,
};
pub(crate) use self::delivery::{Delivered, delivered, difference};
pub(crate) use self::loss::{
    dropped_fields, lost_fields, no_result, other_outcome, unread_result, unwritten_result,
};
pub(crate) use self::lost_reply::{was_acquired, was_released, was_stored};
pub(crate) use self::predict::{
    is_overwritten_by_renewal, is_overwritten_later, is_removed_by_failure, predict_begin,
    predict_complete, predict_release, predicted_record, why_disproved,
};
pub(crate) use self::release::releasable;
pub(crate) use self::response_input::{BROKEN_JSON, ResponseInput, header, status};

//! idemctl's own scripts, the source of which is `lua/admin/`.

pub(super) const OBSERVE: &str = include_str!("../../lua/admin/observe.lua");
pub(super) const DELETE_IF_SAME: &str = include_str!("../../lua/admin/delete_if_same.lua");

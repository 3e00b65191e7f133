//! idemctl's own scripts, from `lua/admin/`. Each starts with the parts that several scripts share,
//! because a script cannot call another one.

pub(super) const READ_RECORDS: &str = concat!(
    include_str!("../../lua/admin/shared/deadline.lua"),
    include_str!("../../lua/admin/shared/fields.lua"),
    include_str!("../../lua/admin/read_records.lua")
);
pub(super) const CHANGE_MANY_IF_SAME: &str = concat!(
    include_str!("../../lua/admin/shared/deadline.lua"),
    include_str!("../../lua/admin/change_many_if_same.lua")
);
pub(super) const RESTORE_MANY_IF_ABSENT: &str = concat!(
    include_str!("../../lua/admin/shared/deadline.lua"),
    include_str!("../../lua/admin/restore_many_if_absent.lua")
);

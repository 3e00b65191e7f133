//! How the workers of a race go about it.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Strategy {
    Schema,
    /// GET, and SET when nothing was there.
    CheckThenAct,
    /// SET NX, and GET when that fails: what an older release does.
    SetNx,
}

as_str!(Strategy);

//! `payloads-apart`: a request with another payload is not served as if its payload were the same.

use super::Invariant;
use crate::domain::exploration::{Act, Moment};
use crate::domain::schema::Schema;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "payloads-apart",
    sentence: "a request with another payload is not served as if its payload were the same",
    remedy: |_| {
        "store a fingerprint of the payload with the lock and the result, and let begin compare it first".to_owned()
    },
    asked_of: Schema::compares_payloads,
    shown_by: |moment| moment.after.mistaken.map(Act::Other),
    broken,
};

fn broken(moment: &Moment) -> bool {
    moment.after.mistaken.is_some()
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;
    use crate::domain::exploration::Facts;

    #[test]
    fn it_is_told_when_it_is_broken() {
        let mistaken = Facts { mistaken: Some(0), ..moment().after };
        assert!((INVARIANT.broken)(&Moment { after: mistaken, ..moment() }));
        assert!(!(INVARIANT.broken)(&moment()));
    }
}

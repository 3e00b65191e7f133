//! The line of `sweep --check`, as monitoring plugins write it: words for people, then `label=value;warn;crit`.

use crate::domain::select::tally::Tally;
use crate::render::words;

/// What was found among so many Redis keys, by the findings that were sought.
pub fn check(tally: &Tally<&'static str>, sought: &[&'static str], keys: u64) -> String {
    let total = tally.total();
    let counts: Vec<_> = tally.groups().map(|(code, group)| format!("{} {code}", group.count)).collect();
    let words = if total == 0 {
        format!("OK - no orphaned locks among {keys} keys")
    } else {
        let oldest = tally.oldest().map_or_else(|| "unknown".to_owned(), words::short_age);
        format!("CRITICAL - {total} orphaned: {}; oldest {oldest}", counts.join(", "))
    };
    let count = |code: &str| tally.groups().find(|(found, _)| **found == code).map_or(0, |(_, group)| group.count);
    let labels: Vec<_> = sought.iter().map(|code| format!(" {}={}", code.replace('-', "_"), count(code))).collect();
    format!("IDEMCTL {words} | orphaned={total};0;0{}\n", labels.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::observation::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn says_what_was_found_and_measures_every_finding_that_was_sought() {
        let mut tally = Tally::default();
        let line = check(&tally, &["no-expiry"], 7);
        assert_eq!(line, "IDEMCTL OK - no orphaned locks among 7 keys | orphaned=0;0;0 no_expiry=0\n");
        tally.add("no-expiry", &chi(CHI_LOCK, Expiry::Never), None);
        assert!(check(&tally, &["no-expiry"], 7).contains("1 orphaned: 1 no-expiry; oldest unknown |"));
        let slow = chi(CHI_LOCK, Expiry::In(10_000));
        tally.add("overdue", &slow, slow.age);
        let line = check(&tally, &["no-expiry", "excess-ttl", "overdue"], 7);
        assert_eq!(
            line,
            "IDEMCTL CRITICAL - 2 orphaned: 1 no-expiry, 1 overdue; oldest ~50s | orphaned=2;0;0 no_expiry=1 excess_ttl=0 overdue=1\n"
        );
    }
}

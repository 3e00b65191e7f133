//! Whether numbers with right check digits are there by chance.
//!
//! One of ten numbers passes the check of Luhn whatever it is, and one of 97 that of an IBAN. So a
//! field of order numbers contains some that look like card numbers.

use super::data_sample::NumberCounts;
use super::sensitive::SensitiveKind;

/// The probability up to which chance is no explanation.
const UNLIKELY: f64 = 0.01;

/// The probability up to which it is certainly none: that of three valid numbers of three, rounded
/// up.
const IMPOSSIBLE: f64 = 0.0011;

/// Up to this many numbers at a place, valid ones are mentioned if all that fit are valid.
const FEW: u64 = 3;

/// What the numbers at a place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NumberVerdict {
    /// None is valid, or no more than chance explains.
    Chance,
    /// Too few numbers to tell.
    Possible,
    /// Probably not chance.
    Likely,
    Certain,
}

/// What the numbers at a place are. Numbers that no issuer has say nothing of the others.
pub(crate) fn verdict(counts: &NumberCounts) -> NumberVerdict {
    if counts.test_numbers > 0 {
        return NumberVerdict::Certain;
    }
    if counts.valid == 0 {
        return NumberVerdict::Chance;
    }
    let is_iban = counts.kind == SensitiveKind::Iban;
    let share = if is_iban { 1.0 / 97.0 } else { 0.1 };
    let probability = at_least(counts.valid, counts.fitting, share);
    // The structure of a country and the groups of a card are rare by themselves.
    let is_rare = is_iban || counts.is_grouped;
    let are_all = counts.valid == counts.fitting;
    if probability <= IMPOSSIBLE {
        NumberVerdict::Certain
    } else if probability <= UNLIKELY || are_all && is_rare {
        NumberVerdict::Likely
    } else if are_all && counts.numbers <= FEW {
        NumberVerdict::Possible
    } else {
        NumberVerdict::Chance
    }
}

/// The probability that this many or more of `trials` succeed, each with the probability `share`.
#[expect(clippy::cast_precision_loss, reason = "counts of a sample are far below 2^52")]
fn at_least(successes: u64, trials: u64, share: f64) -> f64 {
    // The terms are logarithms, because they may be very small.
    let mut term = trials as f64 * (1.0 - share).ln();
    let mut sum = 0.0;
    for count in 0..=trials {
        if count >= successes {
            sum += term.exp();
        }
        let (count, left) = (count as f64, (trials - count) as f64);
        term += (left / (count + 1.0)).ln() + (share / (1.0 - share)).ln();
    }
    sum.min(1.0)
}

//! What is told of a storm.

use std::fmt::Write as _;

use crate::judge::Wrong;
use crate::storm::Over;

/// The groups of counts, in their order.
const GROUPS: [&str; 9] = [
    "services",
    "disappeared",
    "given an expiry",
    "restored",
    "left alone",
    "runs",
    "looks",
    "outcomes",
    "oracle",
];

impl Over {
    /// True when nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.verdict.wrong.is_empty()
    }

    /// All counts, and the first of each kind of wrong.
    pub fn table(&self) -> String {
        let mut text = format!("storm on {:?}, seed {}\n", self.mode, self.seed);
        for group in GROUPS {
            let _ = writeln!(text, "{group}");
            for ((_, what), count) in self.verdict.counts.iter().filter(|((of, _), _)| *of == group)
            {
                let _ = writeln!(text, "  {count:>8}  {what}");
            }
        }
        text.push_str("wrong\n");
        for (wrong, words) in Wrong::ALL {
            let _ = writeln!(text, "  {:>8}  {words}", self.verdict.count_of(wrong));
            for ((_, by), (count, told)) in
                self.verdict.wrong.iter().filter(|((of, _), _)| *of == wrong)
            {
                let _ = writeln!(text, "            {count} by {by}, e.g.");
                told.iter().for_each(|told| text += &format!("              {told}\n"));
            }
        }
        text
    }
}

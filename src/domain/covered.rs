//! What an answer covers. A reassurance (`ok`, `no record`, `unchanged`) is made from what was read,
//! and is unknown if a part of what it claims was not read.

/// What a command read, and what it could not read of what its answer is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covered {
    /// How many records, keys or nodes were read.
    pub(crate) read: u64,
    gaps: Vec<Gap>,
}

/// A part that was not read, e.g. a node, a schema, or the rest of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) what: String,
    pub(crate) why: String,
}

/// A statement that nothing is wrong, or that nothing is there. Only [`Covered::reassurance`]
/// makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reassurance(String);

impl Covered {
    pub(crate) fn of(read: u64) -> Self {
        Self { read, gaps: Vec::new() }
    }

    /// Notes a part that was not read.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.gaps.push(Gap { what: what.into(), why: why.into() });
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The claim, if everything was read.
    ///
    /// # Errors
    /// What was not read.
    pub(crate) fn reassurance(&self, claim: impl Into<String>) -> Result<Reassurance, &[Gap]> {
        if self.is_whole() { Ok(Reassurance(claim.into())) } else { Err(&self.gaps) }
    }

    /// The claim if everything was read, else the words that claim less.
    pub(crate) fn claim<'a>(&self, claim: &'a str, otherwise: &'a str) -> &'a str {
        if self.is_whole() { claim } else { otherwise }
    }

    /// What was not read, as a clause; `None` if everything was.
    pub(crate) fn unread(&self) -> Option<String> {
        let mut parts = Vec::new();
        for Gap { what, why } in &self.gaps {
            parts.push(format!("{what}: {why}"));
        }
        if parts.is_empty() { None } else { Some(parts.join("; ")) }
    }
}

impl Reassurance {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: one gap, and there is no reassurance.
    #[test]
    fn a_reassurance_needs_all_that_it_claims() {
        let mut covered = Covered::of(3);
        assert_eq!(covered.reassurance("ok").unwrap().text(), "ok");
        covered.leave_out("schema shop", "its files are invalid");
        assert!(covered.reassurance("ok").is_err());
        assert_eq!(covered.unread().unwrap(), "schema shop: its files are invalid");
    }
}

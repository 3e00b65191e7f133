//! The coverage of an answer. A reassurance (`ok`, `no record`, `unchanged`) is made only if all parts
//! that it claims were read.

/// The records, checks or nodes that a command read, and the parts of its answer that it did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covered {
    /// How many records were read, if the answer depends on there being any.
    pub(crate) read: u64,
    /// The parts that were not read, e.g. a node, a schema, or the rest of a value, and why.
    left_out: Vec<(String, String)>,
}

impl Covered {
    /// Notes a part that was not read.
    pub(crate) fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.left_out.push((what.into(), why.into()));
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// The reassurance if everything was read, and otherwise an answer that claims less. Nothing
    /// else makes a reassurance.
    pub(crate) fn claim<T>(&self, reassurance: T, otherwise: T) -> T {
        if self.is_whole() { reassurance } else { otherwise }
    }

    /// The reassurance, or which parts were not read.
    pub(crate) fn answer(&self, reassurance: String) -> String {
        let unread = self.unread().unwrap_or_default();
        self.claim(reassurance, format!("nothing was found, but not everything was read: {unread}"))
    }

    /// The parts that were not read, as a clause; `None` if everything was read.
    pub(crate) fn unread(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (what, why) in &self.left_out {
            parts.push(format!("{what}: {why}"));
        }
        if parts.is_empty() { None } else { Some(parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: if one part was not read, there is no reassurance.
    #[test]
    fn a_reassurance_needs_all_that_it_claims() {
        let mut covered = Covered::default();
        assert_eq!(covered.claim("ok", "unknown"), "ok");
        covered.leave_out("schema shop", "its files are invalid");
        assert_eq!(covered.claim("ok", "unknown"), "unknown");
        assert_eq!(covered.unread().unwrap(), "schema shop: its files are invalid");
    }
}

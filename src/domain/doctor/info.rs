//! The fields of INFO, and of CLUSTER INFO, which has the same format.

use std::collections::BTreeMap;

use super::refusal::{FactResult, missing};

/// The fields of a reply in the format `name:value`, one per line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InfoFields {
    command: &'static str,
    fields: BTreeMap<String, String>,
}

impl InfoFields {
    /// Parses the reply to `command`. Headings and empty lines are skipped.
    pub(crate) fn parse(command: &'static str, text: &str) -> Self {
        let mut fields = BTreeMap::new();
        for line in text.lines() {
            if line.starts_with('#') {
                continue;
            }
            if let Some((name, value)) = line.split_once(':') {
                fields.insert(name.to_owned(), value.trim_end().to_owned());
            }
        }
        Self { command, fields }
    }

    /// The value of a field.
    ///
    /// # Errors
    /// The field is missing or empty. Managed services omit fields, and some leave them empty.
    pub(crate) fn field(&self, name: &str) -> FactResult<&str> {
        match self.fields.get(name) {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(missing(self.command, name)),
        }
    }

    /// The values of the fields `NAME0`, `NAME1` and so on.
    pub(crate) fn numbered(&self, name: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (field, value) in &self.fields {
            let Some(number) = field.strip_prefix(name) else { continue };
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
                values.push(value.as_str());
            }
        }
        values
    }
}

/// The value of `name` in a list such as `ip=10.0.0.2,port=6379,lag=0`.
pub(crate) fn part_of<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    for part in list.split(',') {
        if let Some((key, value)) = part.split_once('=')
            && key == name
        {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_a_missing_or_empty_one_is_unknown() {
        let text = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:\r\nslave0:ip=::1,lag=2\r\n";
        let info = InfoFields::parse("INFO", text);
        assert_eq!(info.field("maxmemory"), Ok("0"));
        for name in ["maxmemory_policy", "evicted_keys"] {
            let refusal = info.field(name).unwrap_err();
            assert_eq!((refusal.command.as_str(), refusal.rule), ("INFO", None));
            assert!(refusal.why.contains(name), "{}", refusal.why);
        }
        assert_eq!(info.numbered("slave"), ["ip=::1,lag=2"]);
        assert_eq!(part_of("ip=::1,lag=2", "lag"), Some("2"));
        assert_eq!(part_of("ip=::1,lag=2", "port"), None);
    }
}

//! The records that a restore includes, as `--only` names them: which records each word of the
//! operator means.

use super::name::{ParsedName, RecordName};

/// The words of `--only`, and the records that match each of them.
#[derive(Debug, Default)]
pub struct Only {
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    parsed: Option<ParsedName>,
    /// The records that the word means.
    names: Vec<RecordName>,
}

impl Only {
    pub(crate) fn of<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut only = Self::default();
        for text in words {
            only.words.push(Word {
                text: text.to_vec(),
                parsed: RecordName::parse(text),
                names: Vec::new(),
            });
        }
        only
    }

    /// True if no word was given, so that every record is restored.
    pub(crate) fn is_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Notes a record of the backup. All records must be noted before any is queried.
    pub(crate) fn note(&mut self, schema: &str, key: &[u8], redis_key: &[u8]) {
        for word in &mut self.words {
            if !word.means(schema, key, redis_key) {
                continue;
            }
            // Each Redis key of a record is noted, and the record counts once.
            if word.names.iter().any(|known| known.schema == schema && known.key == key) {
                continue;
            }
            word.names.push(RecordName {
                db: None,
                schema: schema.to_owned(),
                prefix: None,
                key: key.to_vec(),
            });
        }
    }

    /// True if a word that is not ambiguous names the record.
    pub(crate) fn holds(&self, schema: &str, key: &[u8], redis_key: &[u8]) -> bool {
        if self.is_all() {
            return true;
        }
        for word in &self.words {
            // A client may choose a key that also names another record, so an ambiguous word
            // restores none.
            if word.names.len() == 1 && word.means(schema, key, redis_key) {
                return true;
            }
        }
        false
    }

    /// The words that name more than one record each, and the records.
    pub(crate) fn ambiguous(&self) -> impl Iterator<Item = (&[u8], &[RecordName])> {
        let words = self.words.iter().filter(|word| word.names.len() > 1);
        words.map(|word| (word.text.as_slice(), word.names.as_slice()))
    }

    /// The words that name none of the records.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &[u8]> {
        self.words.iter().filter(|word| word.names.is_empty()).map(|word| word.text.as_slice())
    }

    /// True if words were given, and none of them names a record.
    pub(crate) fn is_all_unknown(&self) -> bool {
        !self.is_all() && self.unknown().count() == self.words.len()
    }

    /// True if every word names more than one record.
    pub(crate) fn is_all_ambiguous(&self) -> bool {
        !self.is_all() && self.ambiguous().count() == self.words.len()
    }
}

impl Word {
    fn means(&self, schema: &str, key: &[u8], redis_key: &[u8]) -> bool {
        if let Some(parsed) = &self.parsed {
            if parsed.name.schema == schema && parsed.name.key == key {
                return true;
            }
            // A quoted text is always a name.
            if parsed.is_quoted {
                return false;
            }
        }
        self.text == key || self.text == redis_key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a word that names more than one record brings none of them back, and its names do.
    #[test]
    fn an_ambiguous_word_holds_nothing_and_a_name_holds_its_record() {
        let records = [
            ("express", "victim"),
            ("express", "idem:victim"),
            ("go", "victim"),
            ("go", "express/victim"),
        ];
        let held = |words: &[&str]| {
            let mut only = Only::of(words.iter().map(|word| word.as_bytes()));
            let redis_key = |key: &str| format!("idem:{key}");
            records.iter().for_each(|(schema, key)| {
                only.note(schema, key.as_bytes(), redis_key(key).as_bytes())
            });
            let holds = |(schema, key): &&(&str, &str)| {
                only.holds(schema, key.as_bytes(), redis_key(key).as_bytes())
            };
            let held: Vec<_> = records
                .iter()
                .filter(holds)
                .map(|(schema, key)| format!("{schema} {key}"))
                .collect();
            (held, only.ambiguous().count(), only.is_all_ambiguous())
        };
        assert_eq!(held(&["victim"]), (vec![], 1, true));
        assert_eq!(held(&["idem:victim", "go/victim"]), (vec!["go victim".to_owned()], 1, false));
        assert_eq!(held(&["express/victim"]), (vec![], 1, true));
        assert_eq!(held(&["express/\"victim\""]), (vec!["express victim".to_owned()], 0, false));
        assert_eq!(held(&["nowhere"]), (vec![], 0, false));
        assert_eq!(held(&[]).0.len(), 4);
    }
}

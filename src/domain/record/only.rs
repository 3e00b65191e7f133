//! The records that a restore includes, as `--only` names them: which records each word of the
//! operator means.

use super::name::RecordName;

/// The words of `--only`, and the records that match each of them.
#[derive(Debug, Default)]
pub struct Only {
    words: Vec<Word>,
}

#[derive(Debug)]
struct Word {
    text: Vec<u8>,
    parsed: Option<RecordName>,
    /// The records that the word means.
    names: Vec<RecordName>,
    /// The records that it would mean under another prefix.
    under_other_prefixes: Vec<RecordName>,
}

impl Only {
    pub(crate) fn of<'a>(words: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut only = Self::default();
        for text in words {
            only.words.push(Word {
                text: text.to_vec(),
                parsed: RecordName::parse(text),
                names: Vec::new(),
                under_other_prefixes: Vec::new(),
            });
        }
        only
    }

    /// True if no word was given, so that every record is restored.
    pub(crate) fn is_all(&self) -> bool {
        self.words.is_empty()
    }

    /// Notes a record of the backup. All records must be noted before any is queried.
    pub(crate) fn note(&mut self, name: &RecordName, redis_key: &[u8]) {
        for word in &mut self.words {
            let names = if word.means(name, redis_key) {
                &mut word.names
            } else if word.names_key(name) {
                &mut word.under_other_prefixes
            } else {
                continue;
            };
            // Each Redis key of a record is noted, and the record counts once.
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }

    /// True if a word that is not ambiguous names the record.
    pub(crate) fn holds(&self, name: &RecordName, redis_key: &[u8]) -> bool {
        if self.is_all() {
            return true;
        }
        for word in &self.words {
            // A client may choose a key that also names another record, so an ambiguous word
            // restores none.
            if word.names.len() == 1 && word.means(name, redis_key) {
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

    /// The records that these words would mean under another prefix.
    pub(crate) fn under_other_prefixes(&self) -> impl Iterator<Item = &RecordName> {
        let words = self.words.iter().filter(|word| word.names.is_empty());
        words.flat_map(|word| &word.under_other_prefixes)
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
    fn means(&self, name: &RecordName, redis_key: &[u8]) -> bool {
        let is_name = match &self.parsed {
            Some(parsed) => self.names_key(name) && parsed.prefix == name.prefix,
            None => false,
        };
        is_name || self.text == name.key || self.text == redis_key
    }

    /// True if the word is a name with this schema and idempotency key, under any prefix.
    fn names_key(&self, name: &RecordName) -> bool {
        match &self.parsed {
            Some(parsed) => parsed.schema == name.schema && parsed.key == name.key,
            None => false,
        }
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
        let records = records.map(|(schema, key)| {
            RecordName::parse(format!("{schema}/\"{key}\"").as_bytes()).unwrap()
        });
        let held = |words: &[&str]| {
            let mut only = Only::of(words.iter().map(|word| word.as_bytes()));
            let redis_key = |name: &RecordName| [b"idem:", &name.key[..]].concat();
            records.iter().for_each(|name| only.note(name, &redis_key(name)));
            let holds = |name: &&RecordName| only.holds(name, &redis_key(name));
            let held: Vec<_> = records.iter().filter(holds).map(RecordName::text).collect();
            (held, only.ambiguous().count(), only.is_all_ambiguous())
        };
        assert_eq!(held(&["victim"]), (vec![], 1, true));
        assert_eq!(held(&["idem:victim", "go/victim"]), (vec!["go/victim".to_owned()], 1, false));
        assert_eq!(held(&["express/victim"]), (vec![], 1, true));
        assert_eq!(held(&["express/\"victim\""]), (vec!["express/victim".to_owned()], 0, false));
        assert_eq!(held(&["express@\"t1:\"/victim"]), (vec![], 0, false));
        assert_eq!(held(&["nowhere"]), (vec![], 0, false));
        assert_eq!(held(&[]).0.len(), 4);
    }
}

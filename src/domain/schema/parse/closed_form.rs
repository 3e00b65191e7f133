//! What makes a form closed, or opaque.

use crate::domain::schema::closed::Closed;
use crate::domain::schema::forms::Encoding;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::RawValue;

/// The fields of a form that says which there are; `None` for one that does not.
pub(super) fn resolve(raw: &RawValue) -> Checked<Option<Closed>> {
    check_opaque(raw)?;
    let lists = [("required", raw.required.as_ref()), ("optional", raw.optional.as_ref()), ("null", Some(&raw.null))];
    for (name, list) in lists {
        for (index, path) in list.into_iter().flatten().enumerate() {
            field(path, raw.encoding).at(index).at(name)?;
        }
    }
    if raw.required.is_none() && raw.optional.is_none() {
        return match (raw.null.is_empty(), raw.strict) {
            (false, _) => wrong("`null` goes with `required` or `optional`").at("null"),
            (_, true) => wrong("`strict` goes with `required` or `optional`").at("strict"),
            (true, false) => Ok(None),
        };
    }
    let required = raw.fields_are.keys().chain(&raw.has).chain(raw.required.iter().flatten());
    let optional: Vec<_> = raw.optional.iter().flatten().map(String::as_str).collect();
    let mut closed = Closed::new(required.map(String::as_str), &optional, raw.strict);
    for path in raw.fields.pointers().map(|(_, path)| path).filter(|path| !path.is_empty()) {
        closed.allow(path);
    }
    for (index, path) in raw.null.iter().enumerate() {
        match closed.get_mut(path) {
            Some(member) => member.may_be_null = true,
            None => return wrong(format!("`{path}` is no field of this form")).at(index).at("null"),
        }
    }
    Ok(Some(closed))
}

fn check_opaque(raw: &RawValue) -> Checked<()> {
    if raw.opaque && (raw.encoding == Encoding::Json || raw.equals.is_some()) {
        return wrong("`opaque` means any text: it goes with encoding = \"text\" and without `equals`").at("opaque");
    }
    Ok(())
}

fn field(path: &str, encoding: Encoding) -> Checked<()> {
    match encoding {
        Encoding::Text => wrong("text has no fields: `required`, `optional` and `null` go with encoding = \"json\""),
        Encoding::Json if !path.starts_with('/') => {
            wrong(format!("`{path}` is not a JSON pointer to a field: it starts with `/`"))
        }
        Encoding::Json => Ok(()),
    }
}

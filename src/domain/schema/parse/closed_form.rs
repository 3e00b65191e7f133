//! What makes a form closed, or opaque.

use crate::domain::schema::closed::Closed;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::opening::Encoding;
use crate::domain::schema::raw::RawValue;

/// The fields of a form that says which there are; `None` for one that does not.
pub(super) fn resolve(raw: &RawValue, encoding: Encoding) -> Checked<Option<Closed>> {
    check_opaque(raw, encoding)?;
    let lists = [("required", raw.required.as_ref()), ("optional", raw.optional.as_ref()), ("null", Some(&raw.null))];
    for (name, list) in lists {
        for (index, path) in list.into_iter().flatten().enumerate() {
            field(path, encoding).at(index).at(name)?;
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
    let moment = raw.expires_at.as_ref().map(|expires_at| expires_at.field.as_str());
    for path in raw.fields.pointers().map(|(_, path)| path).chain(moment).filter(|path| !path.is_empty()) {
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

fn check_opaque(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    if raw.opaque && (encoding != Encoding::Text || raw.equals.is_some()) {
        return wrong("`opaque` means any text: it goes with encoding = \"text\" and without `equals`").at("opaque");
    }
    Ok(())
}

fn field(path: &str, encoding: Encoding) -> Checked<()> {
    match (encoding.has_fields(), path.starts_with('/')) {
        (false, _) => {
            let name = encoding.as_str();
            wrong(format!("{name} has no fields: `required`, `optional` and `null` go with encoding = \"json\""))
        }
        (true, false) => wrong(format!("`{path}` is not a JSON pointer to a field: it starts with `/`")),
        (true, true) => Ok(()),
    }
}

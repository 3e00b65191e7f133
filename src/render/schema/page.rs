//! The page of `schema show`: everything an operator wants to know of a schema.

use std::fmt::Write as _;

use super::words;
use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::schema::{Call, Schema, Step};
use crate::domain::step::fencing;
use crate::render::fold::fold;
use crate::render::style::Palette;
use crate::render::table;
use crate::render::words::late_worker as fate;

const LABEL: usize = 14;

/// A schema as lines of text.
pub fn page(schema: &Schema, palette: Palette, width: Option<usize>) -> String {
    let mut page = Page { text: String::new(), palette, width, schema };
    page.head();
    page.values();
    page.step("Begin", Some(&schema.begin));
    if schema.renew.is_some() {
        page.step("Renew", schema.renew.as_ref());
    }
    page.step("Complete", Some(&schema.complete));
    page.step("Release", schema.release.as_ref());
    page.conduct();
    page.late_worker();
    page.scripts();
    page.text
}

struct Page<'a> {
    text: String,
    palette: Palette,
    width: Option<usize>,
    schema: &'a Schema,
}

impl Page<'_> {
    fn head(&mut self) {
        let schema = self.schema;
        let name = self.palette.bold(&words::safe(&schema.name));
        self.wrapped(0, &format!("{name}  {}", words::safe(&schema.summary)));
        for (slot, template) in schema.slots.iter().zip(words::templates(schema)) {
            let label = if schema.slots.len() == 1 { "Redis key" } else { slot.role.as_str() };
            self.field(&capital(label), &template);
        }
        self.field("Prefix", &words::prefix(&schema.prefix));
        self.field("Lock TTL", &duration::short(millis(schema.lock_ttl)));
        self.field("Result TTL", &duration::short(millis(schema.result_ttl)));
        if let Some(newer) = &schema.older_release_of {
            self.field("Older release", &format!("of {}, on the same Redis keys", words::safe(newer)));
        }
        self.field("Origin", &words::origin(&schema.origin));
    }

    fn values(&mut self) {
        self.section("Values", "the first that fits counts; what fits none is another program's, or unreadable");
        let schema = self.schema;
        let rows = schema.values.iter().map(|case| {
            let told = match words::holds(case) {
                holds if holds.is_empty() => words::told_by(case),
                holds => format!("{}; {holds}", words::told_by(case)),
            };
            let mut row = vec![words::safe(&case.name), case.state.as_str().to_owned(), told];
            if schema.slots.len() > 1 {
                row.insert(1, format!("at {}", schema.slots[case.slot].role.as_str()));
            }
            row
        });
        let rows = rows.collect();
        self.grid(2, rows);
        self.section("Written", "");
        self.field("lock", &words::safe(&schema.write.lock_value.display()));
        self.field("result", &words::safe(&schema.write.result_value.display()));
        if let Some(failed) = &schema.write.failed_value {
            self.field("failed", &words::safe(&failed.display()));
        }
        if let Some(response) = &schema.write.response {
            self.field("response", &words::safe(&response.display()));
        }
    }

    fn step(&mut self, name: &str, step: Option<&Step>) {
        let Some(step) = step else {
            self.section(name, "never: the service has no such step");
            return;
        };
        let owner = match (name, step.checks_owner) {
            ("Begin", _) => "",
            (_, true) => "only by the lock's owner",
            (_, false) => "by anyone: the owner is not checked",
        };
        self.section(name, owner);
        if let Some(note) = &step.note {
            self.wrapped(2, &words::safe(note));
        }
        for (index, call) in step.calls.iter().enumerate() {
            let number = if step.calls.len() > 1 { format!("{}. ", index + 1) } else { String::new() };
            self.wrapped(2, &format!("{number}{}", words::sent(&call.action)));
            self.replies(call);
        }
    }

    fn replies(&mut self, call: &Call) {
        let rows = call.replies.iter().map(|reply| {
            let client = reply.client.as_deref().map(|client| format!("client: {}", words::safe(client)));
            vec![
                words::pattern(&reply.pattern),
                reply.means.as_str().to_owned(),
                words::when(self.schema, reply),
                client.unwrap_or_default(),
            ]
        });
        let rows = rows.collect();
        self.grid(6, rows);
    }

    fn conduct(&mut self) {
        let rows = words::conduct(&self.schema.conduct);
        if rows.is_empty() {
            return;
        }
        self.section("Service", "what it does around the steps");
        self.grid(2, rows.into_iter().map(Vec::from).collect());
    }

    fn late_worker(&mut self) {
        self.section("Late worker", "one that still runs when its lock has expired or was removed");
        self.wrapped(2, fate(fencing::of(self.schema)));
    }

    fn scripts(&mut self) {
        if self.schema.scripts.is_empty() {
            self.section("Scripts", "none: plain commands only");
            return;
        }
        let name = words::safe(&self.schema.name);
        self.section("Scripts", &format!("idemctl schema show {name} --script NAME prints one"));
        let names: Vec<_> = self.schema.scripts.keys().map(|script| words::safe(script)).collect();
        self.wrapped(2, &names.join("  "));
    }

    fn section(&mut self, title: &str, remark: &str) {
        let remark = if remark.is_empty() { String::new() } else { format!("  {}", self.palette.dim(remark)) };
        let _ = writeln!(self.text, "\n{}{remark}", self.palette.bold(title));
    }

    fn field(&mut self, label: &str, value: &str) {
        let label = self.palette.dim(&format!("{label:<LABEL$}"));
        let mut lines = fold(value, self.width.map(|width| width.saturating_sub(LABEL + 2))).into_iter();
        let _ = writeln!(self.text, "  {label}{}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(self.text, "  {:LABEL$}{line}", "");
        }
    }

    fn wrapped(&mut self, indent: usize, text: &str) {
        for (index, line) in fold(text, self.width.map(|width| width.saturating_sub(indent + 2))).iter().enumerate() {
            let hang = if index == 0 { 0 } else { 2 };
            let _ = writeln!(self.text, "{:1$}{line}", "", indent + hang);
        }
    }

    fn grid(&mut self, indent: usize, rows: Vec<Vec<String>>) {
        self.text.push_str(&table::grid(self.palette, self.width, indent, &[], rows));
    }
}

fn capital(label: &str) -> String {
    let mut characters = label.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

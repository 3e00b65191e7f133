//! Schemas for people: the table of `schema list`, and the page of `schema show`.

use std::sync::Arc;

use super::words;
use crate::domain::schema::{Call, Role, Schema, Step, TtlOf};
use crate::render::page::Page;
use crate::render::style::View;
use crate::render::table;
use crate::render::words::late_worker;

/// The smallest width for the column with the origin of a schema.
const ROOMY: usize = 100;

/// The smallest width for the column with the summary.
const WIDE: usize = 160;

/// The table of `schema list`.
pub fn table(schemas: &[Arc<Schema>], view: View) -> String {
    // Without a terminal, lines may have any length, so every column is shown in one line.
    let width = view.width.unwrap_or(usize::MAX);
    let between_keys = if view.width.is_some() { "\n" } else { "  " };
    let mut heading = vec!["SCHEMA", "REDIS KEYS", "LOCK", "RESULT", "OWNER", "BEGIN"];
    if width >= ROOMY {
        heading.push("ORIGIN");
    }
    if width >= WIDE {
        heading.push("SUMMARY");
    }
    let rows = schemas.iter().map(|schema| {
        let mut row = vec![
            words::safe(&schema.name),
            words::templates(schema).join(between_keys),
            words::ttl(schema, TtlOf::Lock),
            words::ttl(schema, TtlOf::Result),
            words::owner_check(schema).to_owned(),
            words::begins_with(schema).to_owned(),
        ];
        if width >= ROOMY {
            row.push(words::origin(&schema.origin));
        }
        if width >= WIDE {
            row.push(words::safe(&schema.summary));
        }
        row
    });
    table::grid(view, 0, &heading, rows)
}

/// The page of `schema show`.
pub fn page(schema: &Schema, view: View) -> String {
    let mut page = SchemaPage { page: Page::new(view), schema };
    page.head();
    page.values();
    page.step("Begin", schema.begin.as_ref());
    // Few services renew their locks, so a missing step needs no section.
    if schema.renew.is_some() {
        page.step("Renew", schema.renew.as_ref());
    }
    page.step("Complete", schema.complete.as_ref());
    page.step("Release", schema.release.as_ref());
    page.conduct();
    page.late_worker();
    page.scripts();
    page.page.text
}

struct SchemaPage<'a> {
    page: Page,
    schema: &'a Schema,
}

impl SchemaPage<'_> {
    fn head(&mut self) {
        let schema = self.schema;
        let name = self.page.view.palette.bold(&words::safe(&schema.name));
        self.page.wrapped(0, &format!("{name}  {}", words::safe(&schema.summary)));
        for (key, template) in schema.keys.iter().zip(words::templates(schema)) {
            let label = match key.role {
                Role::Lock => "Lock key",
                Role::Result => "Result key",
                Role::Record => "Redis key",
            };
            self.page.field(label, &template);
        }
        if let Some(pattern) = schema.key_pattern() {
            self.page.field("Key", &format!("matches {}", words::safe(pattern)));
        }
        let ignored = words::ignored(schema);
        if !ignored.is_empty() {
            self.page.field("Ignored", &format!("{} (no records)", ignored.join("  ")));
        }
        self.page.field("Prefix", &words::prefix(schema));
        self.page.field("Lock TTL", &words::ttl(schema, TtlOf::Lock));
        self.page.field("Result TTL", &words::ttl(schema, TtlOf::Result));
        if let Some(newer) = &schema.older_release_of {
            self.page.field(
                "Older release",
                &format!("{} is the newer release on the same Redis keys", words::safe(newer)),
            );
        }
        self.page.field("Origin", &words::origin(&schema.origin));
    }

    fn values(&mut self) {
        self.section(
            "Values",
            "the first matching format applies; a value that matches none is unrecognised or \
            unreadable",
        );
        let schema = self.schema;
        let rows = schema.values.iter().map(|case| {
            let mut description = words::told_by(case);
            let fields = words::holds(case);
            if !fields.is_empty() {
                description += &format!("; {fields}");
            }
            let mut row =
                vec![words::safe(&case.name), case.state.as_str().to_owned(), description];
            if schema.keys.len() > 1 {
                row.insert(1, format!("at {}", schema.keys[case.key_index].role.as_str()));
            }
            row
        });
        self.grid(2, rows);
        let write = &schema.write;
        let written = [
            ("lock", &write.lock_value),
            ("result", &write.result_value),
            ("failed", &write.failed_value),
            ("response", &write.response),
        ];
        let mut has_heading = false;
        for (name, template) in written {
            let Some(template) = template else { continue };
            if !has_heading {
                self.section("Written", "");
                has_heading = true;
            }
            self.page.field(name, &words::safe(&template.display()));
        }
    }

    fn step(&mut self, name: &str, step: Option<&Step>) {
        let Some(step) = step else {
            self.section(name, "not described");
            return;
        };
        let owner = match (name, step.checks_owner) {
            // A begin step takes a free lock, which has no owner to compare.
            ("Begin", _) if step.gives_ttl => "gives a lock without TTL the lock TTL",
            ("Begin", _) => "",
            (_, true) => "only by the lock's owner",
            (_, false) => "by anyone; the owner is not checked",
        };
        self.section(name, owner);
        if let Some(note) = &step.note {
            self.page.wrapped(2, &words::safe(note));
        }
        for (index, call) in step.calls.iter().enumerate() {
            let number =
                if step.calls.len() > 1 { format!("{}. ", index + 1) } else { String::new() };
            self.page.wrapped(2, &format!("{number}{}", words::sent(&call.action)));
            self.replies(call);
        }
    }

    fn replies(&mut self, call: &Call) {
        let rows = call.replies.iter().map(|reply| {
            let client = match &reply.client {
                Some(client) => format!("client: {}", words::safe(client)),
                None => String::new(),
            };
            vec![
                words::pattern(self.schema, reply),
                reply.means.as_str().to_owned(),
                words::when(self.schema, reply),
                client,
            ]
        });
        self.grid(6, rows);
    }

    fn conduct(&mut self) {
        let rows = words::conduct(&self.schema.service);
        if rows.is_empty() {
            return;
        }
        self.section("Service", "what it does before and after the steps");
        self.grid(2, rows.into_iter().map(Vec::from));
    }

    fn late_worker(&mut self) {
        self.section(
            "Late worker",
            "a worker that still runs after its lock has expired or was removed",
        );
        self.page.wrapped(2, late_worker(self.schema, false));
    }

    fn scripts(&mut self) {
        if self.schema.scripts.is_empty() {
            self.section("Scripts", "none; the steps use plain commands");
            return;
        }
        let name = words::safe(&self.schema.name);
        self.section("Scripts", &format!("idemctl schema show {name} --script NAME prints one"));
        let names: Vec<_> = self.schema.scripts.keys().map(|script| words::safe(script)).collect();
        self.page.wrapped(2, &names.join("  "));
    }

    fn section(&mut self, title: &str, remark: &str) {
        let palette = self.page.view.palette;
        let remark =
            if remark.is_empty() { String::new() } else { format!("  {}", palette.dim(remark)) };
        self.page.line(&format!("\n{}{remark}", palette.bold(title)));
    }

    fn grid(&mut self, indent: usize, rows: impl Iterator<Item = Vec<String>>) {
        self.page.text.push_str(&table::grid(self.page.view, indent, &[], rows));
    }
}

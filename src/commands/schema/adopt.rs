//! `idemctl schema adopt`.

use anyhow::Result;

use crate::args::{SchemaArgs, SchemaFolderArgs};
use crate::context::Context;
use crate::domain::detect::Shelf as _;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::settings::{self, Adoption};

pub(super) fn adopt(context: &mut Context, name: &str, prefix: Option<&str>, folder: SchemaFolderArgs) -> Result<Exit> {
    let args = SchemaArgs { folder, ..SchemaArgs::default() };
    let schemas = context.all_schemas(&args.folder)?;
    let known = || schemas.all().iter().map(|schema| schema.name.as_str()).collect::<Vec<_>>().join(", ");
    let deployed = schemas.deployed(name, prefix).map_err(|error| context.settings.not_loaded(&error, &args))?;
    let Some(schema) = deployed else {
        let stop = Stop::usage(format!("there is no schema `{name}`"));
        return Err(stop.hint(format!("schemas: {}; `idemctl schema new` makes one", known())).into());
    };
    let Some(used) = context.settings.context_name().map(str::to_owned) else { return Err(no_context(context)) };
    let catalog = context.catalog(&args)?;
    let there = catalog.all().iter().find(|there| there.name == name);
    let is_read_unasked = there.is_some();
    // The context may have stated a prefix before.
    let is_bare = !schema.has_prefix() && there.is_none_or(|there| !there.has_prefix());
    // A schema without a literal prefix is read only by its name: so every other one needs its name, too.
    let mut beside: Vec<_> = catalog.all().iter().map(|there| there.name.clone()).collect();
    if !is_read_unasked {
        beside.push(name.to_owned());
    }
    let beside = is_bare.then_some(&beside[..]);
    let adoption = Adoption { schema: name, prefix, beside, is_read_unasked };
    let written = settings::adopt(context.settings.file(), &used, &adoption)?;
    say(context, &used, name, &written);
    Ok(Exit::Done)
}

fn say(context: &mut Context, used: &str, name: &str, written: &[String]) {
    let file = context.settings.file().path().map(|path| path.display().to_string()).unwrap_or_default();
    if written.is_empty() {
        context.ui.status(&format!("Nothing to write: context {used} in {file} reads {name} as it is."));
        return;
    }
    context.ui.status(&format!("Context {used} in {file} says now:"));
    for line in written {
        context.ui.status(&format!("  {}", escape::text(line.as_bytes())));
    }
    context.ui.hint(&format!("`idemctl --context {used} list --schema {name}` lists its records"));
}

fn no_context(context: &Context) -> anyhow::Error {
    let file = context.settings.file().path().map(|path| path.display().to_string()).unwrap_or_default();
    let hint =
        format!("--context NAME; a context is made by two lines in {file}: [contexts.NAME] and url = \"redis://…\"");
    Stop::usage("no context is used, and a schema is adopted in one").hint(hint).into()
}

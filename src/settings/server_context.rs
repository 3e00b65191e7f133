//! The context to which a server belongs. A context's name and protection apply to its address,
//! whichever option names the server.

use super::address;
use super::config::ContextConfig;
use super::file::ConfigFile;
use super::origin::{Origin, Sourced};
use super::resolved::Resolved;
use crate::store::{Address, Target};

/// The context to which a server belongs, and the contexts that protect it from changes.
#[derive(Clone, Default)]
pub(super) struct ServerContext {
    /// The context's name, and its source; `None` if the server does not belong to a context.
    pub(crate) name: Option<Sourced<String>>,
    /// The context; empty if the server does not belong to a context.
    pub(crate) context: ContextConfig,
    /// The name under which the config file defines the context. A temporary local Redis uses a
    /// context's schemas, but not its name.
    pub(crate) stated_in: String,
    /// The first context of this server with `protected`.
    pub(crate) protected_by: Option<String>,
    /// The first context of this server with `read_only`.
    pub(crate) read_only_by: Option<String>,
}

type ContextEntry<'a> = (&'a str, &'a ContextConfig);

impl ServerContext {
    /// The chosen context, for any server.
    pub(super) fn chosen(chosen: Option<&Sourced<String>>, file: &ConfigFile) -> Self {
        let named = named(chosen, file);
        Self::among(named, named.as_slice(), chosen)
    }

    /// The context of the server at this address: the chosen one if its URL leads there, else the
    /// one with this database, else the first. A chosen context without a URL applies to any server
    /// that has no other context.
    pub(super) fn of(
        address: &Address,
        db: i64,
        chosen: Option<&Sourced<String>>,
        file: &ConfigFile,
    ) -> Self {
        let there = contexts_at(address, file);
        let is_chosen = |name: &str| chosen.is_some_and(|chosen| chosen.value == name);
        let of_chosen = || there.iter().find(|(named, _)| is_chosen(named.0));
        let of_db = || there.iter().find(|(_, of)| *of == db);
        let anywhere = named(chosen, file).filter(|(_, context)| context.url.is_none());
        let nearest = of_chosen()
            .or_else(of_db)
            .or_else(|| there.first())
            .map(|(named, _)| *named)
            .or(anywhere);
        let all: Vec<_> = there.iter().map(|(named, _)| *named).chain(anywhere).collect();
        Self::among(nearest, &all, chosen)
    }

    /// The nearest context. It is protected or read-only if any context of the server is.
    fn among(
        nearest: Option<ContextEntry<'_>>,
        all: &[ContextEntry<'_>],
        chosen: Option<&Sourced<String>>,
    ) -> Self {
        let says = |word: fn(&ContextConfig) -> bool| {
            let said = nearest.iter().chain(all).find(|(_, context)| word(context));
            said.map(|(name, _)| (*name).to_owned())
        };
        let sourced = |name: &str| match chosen {
            Some(chosen) if chosen.value == name => chosen.clone(),
            _ => Sourced::new(name.to_owned(), Origin::Address),
        };
        Self {
            name: nearest.map(|(name, _)| sourced(name)),
            context: nearest.map(|(_, context)| context.clone()).unwrap_or_default(),
            stated_in: nearest.map_or("", |(name, _)| name).to_owned(),
            protected_by: says(|context| context.protected),
            read_only_by: says(|context| context.read_only),
        }
    }

    /// Adds the protection of another context of the same server. A server without a context's name
    /// gets this one's name.
    pub(super) fn add(&mut self, name: &str, context: &ContextConfig) {
        self.name.get_or_insert_with(|| Sourced::new(name.to_owned(), Origin::Address));
        if context.protected && self.protected_by.is_none() {
            self.protected_by = Some(name.to_owned());
        }
        if context.read_only && self.read_only_by.is_none() {
            self.read_only_by = Some(name.to_owned());
        }
    }

    /// True if the context adds a protection that the server does not have yet.
    pub(super) fn is_weaker_than(&self, context: &ContextConfig) -> bool {
        (context.protected && self.protected_by.is_none())
            || (context.read_only && self.read_only_by.is_none())
    }

    /// The settings for a temporary local Redis: schemas and TTLs, but no name, colour or
    /// protection.
    pub(super) fn throw_away(self) -> Self {
        let context = ContextConfig { color: None, ..self.context };
        Self { context, stated_in: self.stated_in, ..Self::default() }
    }

    /// The warning if a flag or a variable names a context to which the server does not belong.
    pub(super) fn surprise(
        &self,
        chosen: Option<&Sourced<String>>,
        server: &str,
    ) -> Option<String> {
        let asked = chosen
            .filter(|chosen| matches!(chosen.origin, Origin::Flag(_) | Origin::Variable(_)))?;
        let asked = &asked.value;
        match self.name.as_ref().map(|name| &name.value) {
            Some(name) if name == asked => None,
            Some(name) => Some(format!(
                "{server} is the server of context `{name}`, so its name, protection and schemas \
                apply, not those of `{asked}`"
            )),
            None => Some(format!(
                "{server} is not the server of context `{asked}`, so its name, protection and \
                schemas do not apply"
            )),
        }
    }
}

fn named<'a>(chosen: Option<&Sourced<String>>, file: &'a ConfigFile) -> Option<ContextEntry<'a>> {
    let (name, context) = file.contexts().get_key_value(&chosen?.value)?;
    Some((name, context))
}

/// The contexts whose URL leads to this address, each with its database. Contexts that write the
/// address in the same way come first, followed by those that lead there after their names are
/// resolved. A URL that cannot be read leads nowhere.
fn contexts_at<'a>(address: &Address, file: &'a ConfigFile) -> Vec<(ContextEntry<'a>, i64)> {
    let placed = file.contexts().iter().filter_map(|(name, context)| {
        let target = Target::parse(context.url.as_deref()?).ok()?;
        Some(((name.as_str(), context), target))
    });
    let (mut there, others): (Vec<_>, Vec<_>) =
        placed.partition(|(_, target)| address::is_one(&target.address, address));
    // Only contexts that protect a server are worth the time of a lookup.
    let guards: Vec<_> = others
        .into_iter()
        .filter(|((_, context), _)| context.protected || context.read_only)
        .collect();
    let names =
        guards.iter().flat_map(|(_, target)| address::names(&target.address, address)).collect();
    let resolved = Resolved::of(names);
    there.extend(
        guards
            .into_iter()
            // If a name could not be resolved, the server itself is asked before anything is
            // changed.
            .filter(|(_, target)| {
                address::resolve_to_one(&target.address, address, &resolved) == Some(true)
            }),
    );
    there.into_iter().map(|(named, target)| (named, target.db)).collect()
}

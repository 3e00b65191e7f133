//! The context to which a server belongs. A context's name and protection apply to its address,
//! whichever option names the server.

use std::collections::HashSet;

use super::address;
use super::config::ContextConfig;
use super::file::ConfigFile;
use super::origin::{Origin, Sourced};
use super::resolved::Resolved;
use crate::render::invocation::word;
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
    /// The first context of this server with `read_only`; only this context if `is_named` is true.
    pub(crate) read_only_by: Option<String>,
    /// The first context of this server without `read_only`.
    pub(crate) writable: Option<String>,
    /// True if a flag or a variable names this context.
    pub(crate) is_named: bool,
}

type ContextEntry<'a> = (&'a str, &'a ContextConfig);

impl ConfigFile {
    /// The contexts of a context's server, as far as the addresses in the file show it.
    fn beside(&self, name: &str) -> Vec<ContextEntry<'_>> {
        let address =
            |context: &ContextConfig| Some(Target::parse(context.url.as_deref()?)?.address);
        let Some(own) = self.contexts().get(name).and_then(address) else { return Vec::new() };
        let mut beside = Vec::new();
        for (other, context) in self.contexts() {
            if address(context).is_some_and(|address| address::is_one_as_written(&address, &own)) {
                beside.push((other.as_str(), context));
            }
        }
        beside
    }

    /// True if a context of the same server is protected.
    pub(crate) fn is_protected(&self, name: &str) -> bool {
        self.beside(name).iter().any(|(_, context)| context.protected)
    }

    /// What applies to a server that has read-only contexts and others.
    pub(crate) fn shared_access(&self, name: &str) -> Option<String> {
        let beside = self.beside(name);
        let (read_only, _) = beside.iter().find(|(_, context)| context.read_only)?;
        let (writable, _) = beside.iter().find(|(_, context)| !context.read_only)?;
        Some(format!(
            "the server of context {read_only} is read-only, unless you pass --context {}",
            word(writable)
        ))
    }
}

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
        let mut all = Vec::new();
        let mut of_chosen = None;
        let mut of_db = None;
        for (entry, its_db) in contexts_at(address, file) {
            if let Some(chosen) = chosen
                && chosen.value == entry.0
            {
                of_chosen = Some(entry);
            }
            if its_db == db && of_db.is_none() {
                of_db = Some(entry);
            }
            all.push(entry);
        }
        let first = all.first().copied();
        let anywhere = named(chosen, file).filter(|(_, context)| context.url.is_none());
        let nearest = of_chosen.or(of_db).or(first).or(anywhere);
        all.extend(anywhere);
        Self::among(nearest, &all, chosen)
    }

    /// The nearest context. It is protected if any context of the server is. The same holds for
    /// read-only, unless the operator named the context.
    fn among(
        nearest: Option<ContextEntry<'_>>,
        all: &[ContextEntry<'_>],
        chosen: Option<&Sourced<String>>,
    ) -> Self {
        // The nearest context comes first, so that messages name it if it protects the server.
        let mut protected_by = None;
        let mut read_only_by = None;
        let mut writable = None;
        for (name, context) in nearest.iter().chain(all) {
            if context.protected && protected_by.is_none() {
                protected_by = Some((*name).to_owned());
            }
            if context.read_only && read_only_by.is_none() {
                read_only_by = Some((*name).to_owned());
            }
            if !context.read_only && context.url.is_some() && writable.is_none() {
                writable = Some((*name).to_owned());
            }
        }
        let Some((name, context)) = nearest else {
            return Self { protected_by, read_only_by, writable, ..Self::default() };
        };
        // A context without a URL applies to any server, so its name does not mean this one.
        let is_named = context.url.is_some()
            && chosen.is_some_and(|chosen| chosen.value == name && is_request(chosen));
        if is_named && !context.read_only {
            read_only_by = None;
        }
        let sourced_name = match chosen {
            Some(chosen) if chosen.value == name => chosen.clone(),
            _ => Sourced::new(name.to_owned(), Origin::Address),
        };
        Self {
            name: Some(sourced_name),
            context: context.clone(),
            stated_in: name.to_owned(),
            protected_by,
            read_only_by,
            writable,
            is_named,
        }
    }

    /// Adds the protection of another context of the same server. A server without a context's name
    /// gets this one's name.
    pub(super) fn add(&mut self, name: &str, context: &ContextConfig) {
        self.name.get_or_insert_with(|| Sourced::new(name.to_owned(), Origin::Address));
        if context.protected && self.protected_by.is_none() {
            self.protected_by = Some(name.to_owned());
        }
        if context.read_only && self.read_only_by.is_none() && !self.is_named {
            self.read_only_by = Some(name.to_owned());
        }
    }

    /// True if the context adds a protection that the server does not have yet.
    pub(super) fn is_weaker_than(&self, context: &ContextConfig) -> bool {
        (context.protected && self.protected_by.is_none())
            || (context.read_only && self.read_only_by.is_none() && !self.is_named)
    }

    /// The settings for a temporary local Redis: schemas and TTLs, but no name, colour or
    /// protection.
    pub(super) fn throw_away(self) -> Self {
        // A warning colour would suggest that this is the context's server.
        let context = ContextConfig { color: None, audit_command: None, ..self.context };
        Self { context, stated_in: self.stated_in, ..Self::default() }
    }

    /// The warning if a flag or a variable names a context to which the server does not belong.
    pub(super) fn surprise(
        &self,
        chosen: Option<&Sourced<String>>,
        server: &str,
    ) -> Option<String> {
        let chosen = chosen?;
        // The default context of the file is no request of this run, so it warrants no warning.
        if !is_request(chosen) {
            return None;
        }
        let asked = &chosen.value;
        match &self.name {
            Some(name) if name.value == *asked => None,
            Some(Sourced { value: name, .. }) => Some(format!(
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

/// True if a flag or a variable of this run names the context.
fn is_request(chosen: &Sourced<String>) -> bool {
    matches!(chosen.origin, Origin::Flag(_) | Origin::Variable(_))
}

fn named<'a>(chosen: Option<&Sourced<String>>, file: &'a ConfigFile) -> Option<ContextEntry<'a>> {
    let (name, context) = file.contexts().get_key_value(&chosen?.value)?;
    Some((name, context))
}

/// The contexts whose URL leads to this address, each with its database. Contexts that write the
/// address in the same way come first, followed by those that lead there after their names are
/// resolved. A URL that cannot be read leads nowhere.
fn contexts_at<'a>(address: &Address, file: &'a ConfigFile) -> Vec<(ContextEntry<'a>, i64)> {
    let mut there = Vec::new();
    let mut guards = Vec::new();
    for (name, context) in file.contexts() {
        let Some(url) = context.url.as_deref() else { continue };
        let Some(target) = Target::parse(url) else { continue };
        let entry = (name.as_str(), context);
        if address::is_one_as_written(&target.address, address) {
            there.push((entry, target.db));
        } else if context.protected || context.read_only {
            // Only contexts that protect a server are worth the time of a lookup.
            guards.push((entry, target));
        }
    }
    let mut names = HashSet::new();
    for (_, target) in &guards {
        names.extend(address::names(&target.address, address));
    }
    // One call for all names, because lookups that run together take no longer than one.
    let resolved = Resolved::of(names);
    for (entry, target) in guards {
        // If a name could not be resolved, the server itself is asked before anything is changed.
        if address::is_one(&target.address, address, &resolved) == Some(true) {
            there.push((entry, target.db));
        }
    }
    there
}

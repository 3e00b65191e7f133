//! Which context a server belongs to: a context's name and protection belong to its address, whoever names the server.

use super::address;
use super::config::ContextConfig;
use super::file::ConfigFile;
use super::origin::{Origin, Sourced};
use super::resolved::Resolved;
use crate::store::{Address, Target};

/// The context that a server belongs to, and which contexts keep the server from changes.
#[derive(Clone, Default)]
pub(super) struct ServerContext {
    /// The context's name, and who chose the context; `None` where the server is no context's.
    pub(crate) name: Option<Sourced<String>>,
    /// The context; an empty one where the server is no context's.
    pub(crate) context: ContextConfig,
    /// Where in the config file the context stands; a throw-away server has a context's schemas, and not its name.
    pub(crate) stated_in: String,
    /// The context that says `protected`, among all contexts that have the server.
    pub(crate) protected_by: Option<String>,
    /// The context that says `read_only`, among all contexts that have the server.
    pub(crate) read_only_by: Option<String>,
}

type NamedContext<'a> = (&'a str, &'a ContextConfig);

impl ServerContext {
    /// The context that was chosen, whichever server is worked on.
    pub(super) fn chosen(chosen: Option<&Sourced<String>>, file: &ConfigFile) -> Self {
        let named = named(chosen, file);
        Self::among(named, named.as_slice(), chosen)
    }

    /// The context of the server at this address: the chosen one if its URL leads there, else the one with this database,
    /// else the first. A chosen context without a URL takes any server that no other context has.
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

    /// The nearest context, protected and read-only as soon as any context with the server is.
    fn among(
        nearest: Option<NamedContext<'_>>,
        all: &[NamedContext<'_>],
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

    /// Adds what another context says of the same server. A server that had no context's name gets this one's.
    pub(super) fn add(&mut self, name: &str, context: &ContextConfig) {
        self.name.get_or_insert_with(|| Sourced::new(name.to_owned(), Origin::Address));
        if context.protected && self.protected_by.is_none() {
            self.protected_by = Some(name.to_owned());
        }
        if context.read_only && self.read_only_by.is_none() {
            self.read_only_by = Some(name.to_owned());
        }
    }

    /// True if the context keeps changes away that nothing keeps away so far.
    pub(super) fn is_weaker_than(&self, context: &ContextConfig) -> bool {
        (context.protected && self.protected_by.is_none())
            || (context.read_only && self.read_only_by.is_none())
    }

    /// What holds for a throw-away server: schemas and TTLs, but no name, colour or protection.
    pub(super) fn throw_away(self) -> Self {
        let context = ContextConfig { color: None, ..self.context };
        Self { context, stated_in: self.stated_in, ..Self::default() }
    }

    /// The warning where a flag or a variable asks for another context than the server's.
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

fn named<'a>(chosen: Option<&Sourced<String>>, file: &'a ConfigFile) -> Option<NamedContext<'a>> {
    let (name, context) = file.contexts().get_key_value(&chosen?.value)?;
    Some((name, context))
}

/// The contexts whose URL leads to this address, each with its database: those that name it as it is named here, then
/// those that lead there once names are looked up. A URL that cannot be read leads nowhere.
fn contexts_at<'a>(address: &Address, file: &'a ConfigFile) -> Vec<(NamedContext<'a>, i64)> {
    let placed = file.contexts().iter().filter_map(|(name, context)| {
        let target = Target::parse(context.url.as_deref()?).ok()?;
        Some(((name.as_str(), context), target))
    });
    let (mut there, others): (Vec<_>, Vec<_>) =
        placed.partition(|(_, target)| address::is_one(&target.address, address));
    // Only what keeps changes away is worth the time that a lookup takes.
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
            // Of a name that could not be looked up the server itself is asked, before anything is changed.
            .filter(|(_, target)| {
                address::resolve_to_one(&target.address, address, &resolved) == Some(true)
            }),
    );
    there.into_iter().map(|(named, target)| (named, target.db)).collect()
}

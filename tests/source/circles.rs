//! No circle of files: whoever reads a file never comes back to it by following what it uses.
//!
//! A name that a `mod.rs` passes on counts as used from the file that defines it.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_source::{Name, Source};

/// What the modules of a crate use of each other.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Name>,
    /// What a module passes on: its own name for it, and whose it is.
    passed_on: BTreeMap<(Name, String), Name>,
    used: BTreeMap<Name, BTreeSet<Name>>,
}

impl Crate {
    fn of(sources: &[Source]) -> Self {
        let modules = sources.iter().map(Source::module).collect();
        let mut all = Self { modules, ..Self::default() };
        sources.iter().for_each(|source| all.take(source));
        all
    }

    fn take(&mut self, source: &Source) {
        let module = source.module();
        for used in &source.uses {
            let Some(name) = self.in_crate(source, &used.path) else { continue };
            if let (true, Some(own)) = (used.is_passed_on, &used.own) {
                self.passed_on.insert((module.clone(), own.clone()), name.clone());
            }
            // What a room passes on of its own files is no use of them.
            if !(used.is_passed_on && name.starts_with(&module)) {
                self.used.entry(module.clone()).or_default().insert(name);
            }
        }
        let named = source.paths_of_many().filter_map(|path| source.resolve(path));
        self.used.entry(module.clone()).or_default().extend(named);
    }

    /// A name of this crate from its root on; `None` for one of another crate, or of this file.
    fn in_crate(&self, source: &Source, path: &[String]) -> Option<Name> {
        let below = |path: &[String]| [&source.module()[..], path].concat();
        match path.first()?.as_str() {
            "self" => Some(below(&path[1..])),
            "crate" | "super" => source.resolve(path),
            _ => self.modules.contains(&below(&path[..1])).then(|| below(path)),
        }
    }

    /// The module that defines a name.
    fn defines(&self, name: &Name) -> Name {
        let length = (0..=name.len())
            .rev()
            .find(|length| self.modules.contains(&name[..*length]))
            .unwrap_or(0);
        let (module, rest) = name.split_at(length);
        let passed_on =
            rest.first().and_then(|first| self.passed_on.get(&(module.to_vec(), first.clone())));
        match passed_on {
            Some(target) => self.defines(&[target.as_slice(), &rest[1..]].concat()),
            None => module.to_vec(),
        }
    }

    /// A circle, each of its files using the next one.
    fn circle(&self) -> Option<Vec<Name>> {
        let edges: BTreeMap<&Name, BTreeSet<Name>> = self
            .used
            .iter()
            .map(|(module, used)| (module, used.iter().map(|name| self.defines(name)).collect()))
            .collect();
        let mut done = BTreeSet::new();
        self.modules.iter().find_map(|start| descend(start, &edges, &mut Vec::new(), &mut done))
    }
}

/// Follows what a module uses until a module comes back that is on the way already.
fn descend(
    module: &Name,
    edges: &BTreeMap<&Name, BTreeSet<Name>>,
    way: &mut Vec<Name>,
    done: &mut BTreeSet<Name>,
) -> Option<Vec<Name>> {
    if let Some(at) = way.iter().position(|seen| seen == module) {
        return Some(way[at..].to_vec());
    }
    if !done.insert(module.clone()) {
        return None;
    }
    way.push(module.clone());
    let used = edges.get(module).into_iter().flatten().filter(|used| *used != module);
    let found = used.into_iter().find_map(|used| descend(used, edges, way, done));
    way.pop();
    found
}

#[test]
fn no_circle_of_files() {
    let sources: Vec<_> =
        Source::of_crate().into_iter().filter(|source| source.file != "src/main.rs").collect();
    let circle = Crate::of(&sources).circle();
    let shown = circle
        .map(|files| files.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(" -> "));
    assert_eq!(
        shown, None,
        "files that use each other are one file, or what they share is a third one"
    );
}

/// Rule: a circle is found, also one that goes through what a `mod.rs` passes on.
#[test]
fn a_circle_is_seen_through_what_is_passed_on() {
    let read = |files: &[(&str, &str)]| {
        let source = |(path, text): &(&str, &str)| Source::new(&format!("src/{path}.rs"), text);
        Crate::of(&files.iter().map(source).collect::<Vec<_>>())
    };
    let room = [
        ("room/mod", "mod a;\nmod b;\npub use a::A;"),
        ("room/a", "use super::b::B;\npub struct A;"),
    ];
    let through = [&room[..], &[("room/b", "use crate::room::A;\npub struct B;")]].concat();
    assert_eq!(read(&through).circle().map(|files| files.len()), Some(2));
    let in_code =
        [&room[..], &[("room/b", "pub struct B;\nfn f() -> crate::room::A { A }")]].concat();
    assert!(read(&in_code).circle().is_some());
    let none = [
        &room[..],
        &[("room/b", "pub struct B;\n#[cfg(test)]\nmod tests { use crate::room::A; }")],
    ]
    .concat();
    assert_eq!(read(&none).circle(), None);
}

//! No circle of files: whoever reads a file never comes back to it by following what it uses.
//!
//! A name that a `mod.rs` passes on counts as used from the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path as File;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, Path, UseTree, Visibility};

/// A module, or what stands in one, as the names from the crate's root on.
type Name = Vec<String>;

/// What the modules of a crate use of each other.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Name>,
    /// What a module passes on: its own name for it, and whose it is.
    passed_on: BTreeMap<(Name, String), Name>,
    used: BTreeMap<Name, BTreeSet<Name>>,
}

impl Crate {
    /// Reads all files of a folder.
    fn read(root: &File) -> Self {
        let mut files = Vec::new();
        find(root, &mut Vec::new(), &mut files);
        Self::of(files.iter().map(|(name, text)| (name.clone(), text.as_str())))
    }

    fn of<'a>(files: impl Iterator<Item = (Name, &'a str)>) -> Self {
        let mut all = Self::default();
        let files: Vec<_> = files.collect();
        all.modules = files.iter().map(|(name, _)| name.clone()).collect();
        for (name, text) in files {
            let mut module = Module { of: &mut all, name };
            module.visit_file(&syn::parse_file(text).unwrap());
        }
        all
    }

    /// The module that defines a name.
    fn defines(&self, name: &Name) -> Name {
        let length = (0..=name.len()).rev().find(|length| self.modules.contains(&name[..*length])).unwrap_or(0);
        let (module, rest) = name.split_at(length);
        let passed_on = rest.first().and_then(|first| self.passed_on.get(&(module.to_vec(), first.clone())));
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

fn find(folder: &File, name: &mut Name, files: &mut Vec<(Name, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            name.push(stem);
            find(&path, name, files);
            name.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !["main", "tests", "samples"].contains(&stem.as_str())
        {
            let own = if ["mod", "lib"].contains(&stem.as_str()) { None } else { Some(stem) };
            files.push((name.iter().cloned().chain(own).collect(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A module that is being read.
struct Module<'a> {
    of: &'a mut Crate,
    name: Name,
}

impl Module<'_> {
    /// A name of this crate from its root on; `None` for one of another crate, or of this file.
    fn in_crate(&self, words: &[String]) -> Option<Name> {
        let supers = words.iter().take_while(|word| *word == "super").count();
        let below = |base: &[String], rest: &[String]| [base, rest].concat();
        match words.first()?.as_str() {
            "crate" => Some(words[1..].to_vec()),
            "self" => Some(below(&self.name, &words[1..])),
            "super" => Some(below(&self.name[..self.name.len().checked_sub(supers)?], &words[supers..])),
            first => {
                let child = below(&self.name, &[first.to_owned()]);
                self.of.modules.contains(&child).then(|| below(&self.name, words))
            }
        }
    }

    fn uses(&mut self, name: Name) {
        self.of.used.entry(self.name.clone()).or_default().insert(name);
    }

    fn take_use(&mut self, tree: &UseTree, before: &mut Name, is_passed_on: bool) {
        let (last, own) = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_use(&path.tree, before, is_passed_on);
                before.pop();
                return;
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.take_use(tree, before, is_passed_on));
            }
            UseTree::Glob(_) => (None, None),
            UseTree::Name(name) => (Some(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(name) => (Some(name.ident.to_string()), Some(name.rename.to_string())),
        };
        let words: Name = before.iter().cloned().chain(last.filter(|last| last != "self")).collect();
        let Some(name) = self.in_crate(&words) else { return };
        if let (true, Some(own)) = (is_passed_on, own) {
            self.of.passed_on.insert((self.name.clone(), own), name.clone());
        }
        // What a room passes on of its own files is no use of them.
        if !(is_passed_on && name.starts_with(&self.name)) {
            self.uses(name);
        }
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

impl<'ast> Visit<'ast> for Module<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.take_use(&item.tree, &mut Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let words: Name = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if words.len() > 1
            && ["crate", "super"].contains(&words[0].as_str())
            && let Some(name) = self.in_crate(&words)
        {
            self.uses(name);
        }
        visit::visit_path(self, path);
    }
}

#[test]
fn no_circle_of_files() {
    let circle = Crate::read(&File::new(env!("CARGO_MANIFEST_DIR")).join("src")).circle();
    let shown = circle.map(|files| files.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(" -> "));
    assert_eq!(shown, None, "files that use each other are one file, or what they share is a third one");
}

/// Rule: a circle is found, also one that goes through what a `mod.rs` passes on.
#[test]
fn a_circle_is_seen_through_what_is_passed_on() {
    let name = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Name>();
    let read = |files: &[(&str, &'static str)]| Crate::of(files.iter().map(|(path, text)| (name(path), *text)));
    let room = [("room", "mod a;\nmod b;\npub use a::A;"), ("room/a", "use super::b::B;\npub struct A;")];
    let through = [&room[..], &[("room/b", "use crate::room::A;\npub struct B;")]].concat();
    assert_eq!(read(&through).circle().map(|files| files.len()), Some(2));
    let in_code = [&room[..], &[("room/b", "pub struct B;\nfn f() -> crate::room::A { A }")]].concat();
    assert!(read(&in_code).circle().is_some());
    let none = [&room[..], &[("room/b", "pub struct B;\n#[cfg(test)]\nmod tests { use crate::room::A; }")]].concat();
    assert_eq!(read(&none).circle(), None);
}

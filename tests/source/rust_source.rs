//! A Rust file as the house rules look at it: what it uses, calls, takes and says, its tests left out.

use std::fs;
use std::path::Path as File;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, LitStr, Macro, Path, Token, Type, UseTree, Visibility};

/// A module, or what stands in one, as the names from the crate's root on; or a path as it is written.
pub type Name = Vec<String>;

/// A name that a `use` brings in.
pub struct Use {
    /// The path to it, as it is written.
    pub path: Name,
    /// What it is called here; nothing for all of a module.
    pub own: Option<String>,
    /// Others may use it from here.
    pub is_passed_on: bool,
}

/// A source file.
#[derive(Default)]
pub struct Source {
    /// Its path from the project's root.
    pub file: String,
    pub text: String,
    pub uses: Vec<Use>,
    /// Paths in the code, those of `use` left out.
    pub paths: Vec<Name>,
    /// Paths of functions, names of methods, and names of macros with their `!`, wherever one is called.
    pub calls: Vec<String>,
    /// Types of fields and parameters that are no references.
    pub taken: Vec<Name>,
    /// The texts of string literals.
    pub strings: Vec<String>,
    /// It holds anything besides modules and uses.
    pub holds_code: bool,
    /// Modules of files that are for tests only.
    test_files: Vec<String>,
}

impl Source {
    /// Parses a file.
    pub fn new(file: &str, text: &str) -> Self {
        let mut source = Self { file: file.to_owned(), text: text.to_owned(), ..Self::default() };
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        for item in &parsed.items {
            match item {
                Item::Mod(module) if is_for_tests(item) => {
                    source.test_files.push(module.ident.to_string())
                }
                _ if is_for_tests(item) => {}
                _ => source.visit_item(item),
            }
            source.holds_code |= !matches!(item, Item::Mod(module) if module.content.is_none() || is_for_tests(item))
                && !matches!(item, Item::Use(_));
        }
        source
    }

    /// Every file of `src/` that is not for tests only.
    pub fn of_crate() -> Vec<Self> {
        let mut sources = Self::below("src");
        assert!(sources.len() > 40, "src/ is read");
        let below = |source: &Self, name: &String| {
            [&source.module()[..], std::slice::from_ref(name)].concat()
        };
        let for_tests: Vec<_> = sources
            .iter()
            .flat_map(|source| {
                source.test_files.iter().map(|name| below(source, name)).collect::<Vec<_>>()
            })
            .collect();
        // The modules below a module for tests are for tests, too.
        let is_for_tests =
            |source: &Self| for_tests.iter().any(|module| source.module().starts_with(module));
        sources.retain(|source| !is_for_tests(source));
        sources
    }

    /// Every file below a folder of the project.
    pub fn below(folder: &str) -> Vec<Self> {
        let root = File::new(env!("CARGO_MANIFEST_DIR"));
        let mut sources = Vec::new();
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            if path.is_dir() {
                sources.extend(Self::below(name));
            } else if name.ends_with(".rs") {
                sources.push(Self::new(name, &fs::read_to_string(&path).unwrap()));
            }
        }
        sources
    }

    /// The module's path within the crate.
    pub fn module(&self) -> Name {
        let path = self.file.trim_start_matches("src/").trim_end_matches(".rs");
        let path = path.strip_suffix("/mod").or_else(|| path.strip_suffix("lib")).unwrap_or(path);
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// The first part of the module's path.
    pub fn room(&self) -> String {
        self.module().first().cloned().unwrap_or_default()
    }

    /// Every path, those of `use` too.
    pub fn all_paths(&self) -> impl Iterator<Item = &Name> {
        self.uses.iter().map(|used| &used.path).chain(&self.paths)
    }

    /// Every path into this crate that begins with `crate` or `super`, from the crate's root on.
    pub fn imports(&self) -> Vec<Name> {
        let used = self.uses.iter().map(|used| &used.path);
        used.chain(self.paths_of_many()).filter_map(|path| self.resolve(path)).collect()
    }

    /// Paths in the code, but for the bare words: `pub(super)` names no module.
    pub fn paths_of_many(&self) -> impl Iterator<Item = &Name> {
        self.paths.iter().filter(|path| path.len() > 1)
    }

    /// From the crate's root on, what `crate::…` or `super::…` in this file means.
    pub fn resolve(&self, path: &[String]) -> Option<Name> {
        let supers = path.iter().take_while(|word| *word == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "super" => {
                let module = self.module();
                Some([&module[..module.len().checked_sub(supers)?], &path[supers..]].concat())
            }
            _ => None,
        }
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
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.take_use(tree, before, is_passed_on));
            }
            UseTree::Glob(_) => (None, None),
            UseTree::Name(name) => (Some(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(name) => (Some(name.ident.to_string()), Some(name.rename.to_string())),
        };
        let path = before.iter().cloned().chain(last.filter(|last| last != "self")).collect();
        self.uses.push(Use { path, own, is_passed_on });
    }

    fn take_type(&mut self, taken: &Type) {
        if let Type::Path(path) = taken {
            self.taken.push(words(&path.path));
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.take_use(&item.tree, &mut Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.paths.push(words(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            self.calls.push(words(&path.path).join("::"));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.calls.push(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.calls.push(format!("{}!", words(&called.path).join("::")));
        if let Ok(args) = called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            // What is parsed here ends here, and a visitor keeps nothing of it.
            args.iter().for_each(|arg| Source::visit_expr(self, arg));
            return;
        }
        // Tokens of the macro's own: strings stand at every second place between the quotation marks.
        for (index, part) in called.tokens.to_string().replace(" :: ", "::").split('"').enumerate()
        {
            if index % 2 == 1 {
                self.strings.push(part.to_owned());
                continue;
            }
            let paths = part.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let named = paths
                .filter(|path| path.contains("::"))
                .map(|path| path.split("::").map(str::to_owned).collect());
            self.paths.extend(named);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.take_type(&field.ty);
        visit::visit_field(self, field);
    }

    fn visit_pat_type(&mut self, parameter: &'ast syn::PatType) {
        self.take_type(&parameter.ty);
        visit::visit_pat_type(self, parameter);
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.strings.push(literal.value());
    }

    /// A doc comment says nothing that the program says.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn words(path: &Path) -> Name {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

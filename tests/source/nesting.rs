//! How deep decisions and loops stand in each other.

use syn::Expr;
use syn::visit::{self, Visit};

use crate::rust_source::Source;

/// Whoever reads a line that stands deeper has too much to keep in mind.
const DEEPEST: usize = 4;

/// The deepest nesting of decisions and loops, a closure's own among those of the function around it.
#[derive(Default)]
struct Nesting {
    now: usize,
    deepest: usize,
    /// The `if` behind an `else` stands beside the first.
    is_else: bool,
}

impl<'a> Visit<'a> for Nesting {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let is_beside = std::mem::take(&mut self.is_else);
        let nests = matches!(
            expr,
            Expr::If(_) | Expr::Match(_) | Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_)
        );
        let adds = usize::from(nests && !is_beside);
        self.now += adds;
        self.deepest = self.deepest.max(self.now);
        if let Expr::If(decision) = expr {
            self.visit_expr(&decision.cond);
            self.visit_block(&decision.then_branch);
            if let Some((_, other)) = &decision.else_branch {
                self.is_else = matches!(**other, Expr::If(_));
                self.visit_expr(other);
            }
        } else {
            visit::visit_expr(self, expr);
        }
        self.now -= adds;
    }
}

/// How deep the deepest line of a file stands.
fn depth(text: &str) -> usize {
    let mut nesting = Nesting::default();
    nesting.visit_file(&syn::parse_file(text).unwrap());
    nesting.deepest
}

/// Rule: no decision or loop stands in more than three others.
#[test]
fn nothing_is_nested_deeper_than_a_reader_follows() {
    let files = ["src", "tests"]
        .into_iter()
        .flat_map(Source::below)
        .map(|source| (depth(&source.text), source.file));
    let deep: Vec<_> = files.filter(|(depth, _)| *depth > DEEPEST).collect();
    assert!(deep.is_empty(), "give what stands so deep a function of its own: {deep:?}");
}

#[test]
fn decisions_and_loops_are_counted() {
    assert_eq!(depth("fn f() { for a in b { if c { while d { match e { _ => 1 } } } } }"), 4);
    assert_eq!(depth("fn f() { if a { 1 } else if b { 2 } else if c { 3 } else { 4 } }"), 1);
    assert_eq!(depth("fn f() { let x = |y| if y { loop {} }; }"), 2);
}

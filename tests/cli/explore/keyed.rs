//! `[effect]`: the system that has the effect knows the key, so that no lock has to prevent a second effect.

use super::{Frontier, explored, frontier, only, ways};
use crate::simulate::variant::{MINE, Variant, run};

/// A built-in schema whose service passes the key on.
fn keyed(schema: &str) -> Variant {
    let service = "\n[service]\n";
    Variant::of(schema)
        .with("schema.toml", service, &format!("\n[effect]\nkeyed = true\n{service}"))
        .checked()
}

fn of_mine(variant: &Variant, words: &[&str]) -> Frontier {
    let folder = variant.folder();
    let dir = ["--schema-dir", folder.to_str().unwrap(), "--sandbox", "-o", "json"];
    frontier(&only(&run(folder, &[&["explore", MINE], words, &dir].concat())))
}

/// Rule: passing the key on is enough where a lock is not.
#[test]
fn with_its_key_an_effect_happens_once() {
    assert!(explored(&["reference", "--workers", "2"]).contains_key("one-effect"));
    assert_eq!(of_mine(&keyed("reference"), &["--workers", "2"]), ways(&[]));
}

/// Rule: the key protects the effect, and nothing else.
#[test]
fn a_key_does_not_protect_a_lock_or_a_result() {
    for schema in ["express", "event-driven"] {
        let words = ["--workers", "2"];
        let mut unkeyed = explored(&[&[schema], &words[..]].concat());
        assert!(unkeyed.remove("one-effect").is_some(), "{schema}: {unkeyed:?}");
        assert_eq!(of_mine(&keyed(schema), &words), unkeyed, "{schema}");
    }
}

#[test]
fn a_worker_that_repeats_an_effect_gets_the_outcome_of_the_first() {
    let keyed = keyed("express");
    let dir = keyed.folder().to_str().unwrap();
    let token = "1:mine,mine:s0.e0.x0.s1.e1";
    let words = ["explore", "--replay", token, "--schema-dir", dir, "--sandbox"];
    let again = run(keyed.folder(), &words).exits(0);
    again
        .shows("executes the payment of 10")
        .shows("gets the outcome of the payment of 10 by its key");
}

/// Rule: in a rolling deploy, the release that does not pass the key on pays again.
#[test]
fn beside_a_release_without_a_key_no_key_helps() {
    let both = keyed("express").and("express", "older");
    let dir = both.folder().to_str().unwrap();
    let words = ["explore", "--mix", "older,mine", "--workers", "2", "--schema-dir", dir];
    let run = run(both.folder(), &[&words[..], &["--sandbox", "-o", "json"]].concat());
    assert!(frontier(&only(&run)).contains_key("one-effect"));
}

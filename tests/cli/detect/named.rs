//! What is a schema's is named, with the fields, the states and the line to adopt the schema.

use serde_json::json;

use super::records::{detected, named, seed};
use crate::support::{BUILT_IN, LOCK, Server};

/// What `named` has to give for ten locks and ten results of each schema.
fn all(prefix: Option<&str>) -> Vec<(String, Option<String>, String, u64)> {
    let is = |schema: &str, count| {
        (schema.to_owned(), prefix.map(str::to_owned), "is".to_owned(), count)
    };
    let of = |schema: &&str| match *schema {
        "event-consumer" | "event-driven" => vec![is(schema, 10), is(schema, 10)],
        schema => vec![is(schema, 20)],
    };
    BUILT_IN.iter().flat_map(of).collect()
}

#[test]
fn each_built_in_schema_is_named_in_a_database_of_all() {
    let server = Server::start();
    BUILT_IN.iter().for_each(|schema| seed(&server, schema, ""));
    let found = detected(&server, &[]);
    assert_eq!(named(&found), all(None), "{found:#}");
    assert_eq!((&found["sampled"], &found["keys"]), (&json!(140), &json!(140)));
    assert_eq!(found["groups"].as_array().unwrap().len(), 9, "nothing is left over: {found:#}");
}

#[test]
fn each_built_in_schema_is_named_with_the_prefix_of_a_deployment() {
    let server = Server::start();
    BUILT_IN.iter().for_each(|schema| seed(&server, schema, "shop:"));
    assert_eq!(named(&detected(&server, &[])), all(Some("shop:")));
}

#[test]
fn two_schemas_under_one_prefix_are_told_apart_by_their_values() {
    let server = Server::start();
    seed(&server, "go-chi", "idempotency:");
    seed(&server, "go-middleware", "");
    let is = |schema: &str, prefix: Option<&str>| {
        (schema.to_owned(), prefix.map(str::to_owned), "is".to_owned(), 20)
    };
    assert_eq!(
        named(&detected(&server, &[])),
        [is("go-chi", Some("idempotency:")), is("go-middleware", None)]
    );
}

#[test]
fn a_lock_without_expiry_is_stuck_and_states_are_counted() {
    let server = Server::start();
    seed(&server, "express", "shop:");
    server.put("shop:idem:order-99", LOCK);
    let found = detected(&server, &[]);
    let group = &found["groups"][0];
    assert_eq!(
        (&group["stuck"], &group["states"]),
        (&json!(1), &json!({ "completed": 10, "in-progress": 11 }))
    );
    let socket = server.socket().display().to_string();
    assert_eq!(group["adopt"], format!("idemctl -s {socket} schema adopt express --prefix shop:"));
    assert_eq!((&group["type"], &group["also_possible"]), (&json!("string"), &json!([])));
}

#[test]
fn the_page_for_people_names_what_speaks_for_a_schema() {
    let server = Server::start();
    seed(&server, "express", "shop:");
    seed(&server, "event-driven", "");
    seed(&server, "go-middleware-v1", "");
    server.fill((0..30).map(|number| (format!("sess:{number}"), "x")), 60_000);
    insta::assert_snapshot!(server.idemctl(&["detect"]).stable(&server));
}

#[test]
fn an_own_schema_is_detected_like_any_other() {
    let server = Server::start();
    let toml = "format = 2\nname = \"notes\"\nsummary = \"Notes\"\n[keys]\nrecord = \"note:{key}\"\n[ttl]\nlock = \"30s\"\nresult = \"1h\"\n[[value]]\nname = \"open\"\nwhere = { \"/phase\" = \"open\" }\nrequired = [\"/phase\"]\nstate = \"in-progress\"\n[[value]]\nname = \"shut\"\nwhere = { \"/phase\" = \"shut\" }\nrequired = [\"/phase\"]\nstate = \"completed\"\n";
    let folder = server.folder().join("schemas/notes");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.toml"), toml).unwrap();
    server.fill((0..9).map(|number| (format!("eu:note:{number}"), r#"{"phase":"shut"}"#)), 60_000);
    let found = detected(
        &server,
        &["--schema-dir", &server.folder().join("schemas").display().to_string()],
    );
    assert_eq!(named(&found), [("notes".to_owned(), Some("eu:".to_owned()), "is".to_owned(), 9)]);
}

//! What `explore` finds in the schemas in use.

use super::*;

fn violates(schema: &str, invariant: &str) -> (String, FaultOutcome) {
    let outcome = FaultOutcome::Violates(Counterexample {
        schema: schema.to_owned(),
        invariant: named(invariant),
        faults: "no fault".to_owned(),
        steps: 7,
        token: "1:x:s0".to_owned(),
    });
    (schema.to_owned(), outcome)
}

#[test]
fn each_schema_with_a_violation_has_a_line_and_the_others_share_one() {
    let of = |facts: &DeploymentFacts| {
        let statements = statements(facts, "schema-violations");
        statements.into_iter().map(|statement| statement.judgement).collect::<Vec<_>>()
    };
    let mut facts = deployment(Vec::new());
    assert_eq!(of(&facts)[0].severity, Unknown, "nothing was explored");
    facts.schemas = vec![Arc::new(schema("express"))];
    let broken = FaultOutcome::Unknown("no server program".to_owned());
    facts.explorations = vec![
        violates("a", "one-effect"),
        ("b".to_owned(), FaultOutcome::Holds),
        violates("c", "owner-only"),
        ("d".to_owned(), broken.clone()),
        ("e".to_owned(), FaultOutcome::Holds),
        ("f".to_owned(), broken),
    ];
    let judged = of(&facts);
    let mut lines = Vec::new();
    for judgement in &judged {
        lines.push((judgement.severity, judgement.schemas.join(" ")));
    }
    let expected = [(Error, "a"), (Warning, "c"), (Unknown, "d"), (Unknown, "f"), (Fine, "b e")];
    assert_eq!(lines, expected.map(|(severity, names)| (severity, names.to_owned())));
    assert_eq!(judged[0].counterexample.as_ref().unwrap().token, "1:x:s0");
    let remedy = statements(&facts, "schema-violations")[0].remedy().unwrap();
    assert!(remedy.contains("--schema a`"), "{remedy}");
    assert!(judged[2].fact.contains("no server program"), "{}", judged[2].fact);
}

//! Test results as JUnit XML, in the dialect that Jenkins, GitLab and GitHub reporters read.

use std::fmt::Write as _;

/// The tests of one schema.
#[derive(Debug, Clone)]
pub(crate) struct TestSuite {
    pub(crate) name: String,
    /// The duration in milliseconds; `None` if it was not measured.
    pub(crate) duration_ms: Option<u64>,
    pub(crate) cases: Vec<TestCase>,
}

/// One test.
#[derive(Debug, Clone)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) outcome: TestOutcome,
    /// What was found, as text of several lines. Reporters show it beside the outcome.
    pub(crate) details: String,
}

/// The outcome of a test, with the message that reporters show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestOutcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl TestSuite {
    fn count(&self, is_counted: fn(&TestOutcome) -> bool) -> usize {
        self.cases.iter().filter(|case| is_counted(&case.outcome)).count()
    }
}

/// Adds a case to the suite with this name, which is created if it is new.
pub(crate) fn add_case(suites: &mut Vec<TestSuite>, name: &str, case: TestCase) {
    for suite in suites.iter_mut() {
        if suite.name == name {
            suite.cases.push(case);
            return;
        }
    }
    suites.push(TestSuite { name: name.to_owned(), duration_ms: None, cases: vec![case] });
}

/// The document for the suites of one command.
pub(crate) fn document(command: &str, suites: &[TestSuite]) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let tests: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let failures: usize = suites.iter().map(|suite| suite.count(is_failed)).sum();
    let _ = writeln!(
        xml,
        "<testsuites name=\"idemctl {}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">",
        escaped(command)
    );
    for suite in suites {
        add_suite(&mut xml, command, suite);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn is_failed(outcome: &TestOutcome) -> bool {
    matches!(outcome, TestOutcome::Failed(_))
}

fn is_skipped(outcome: &TestOutcome) -> bool {
    matches!(outcome, TestOutcome::Skipped(_))
}

fn add_suite(xml: &mut String, command: &str, suite: &TestSuite) {
    // Reporters group tests by the class, in which a dot begins a new group.
    let class = format!("idemctl.{command}.{}", suite.name.replace('.', "_"));
    let time = match suite.duration_ms {
        Some(ms) => format!(" time=\"{}.{:03}\"", ms / 1_000, ms % 1_000),
        None => String::new(),
    };
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"{time}>",
        escaped(&format!("{command} {}", suite.name)),
        suite.cases.len(),
        suite.count(is_failed),
        suite.count(is_skipped)
    );
    for case in &suite.cases {
        let _ = write!(
            xml,
            "    <testcase name=\"{}\" classname=\"{}\"",
            escaped(&case.name),
            escaped(&class)
        );
        add_outcome(xml, case);
    }
    xml.push_str("  </testsuite>\n");
}

fn add_outcome(xml: &mut String, case: &TestCase) {
    let details = escaped(&case.details);
    match &case.outcome {
        TestOutcome::Passed if details.is_empty() => xml.push_str("/>\n"),
        TestOutcome::Passed => {
            let _ = writeln!(xml, ">\n      <system-out>{details}</system-out>\n    </testcase>");
        }
        TestOutcome::Failed(message) => {
            let message = escaped(message);
            let _ = writeln!(
                xml,
                ">\n      <failure message=\"{message}\" type=\"violation\">{details}</failure>\n    \
                </testcase>"
            );
        }
        TestOutcome::Skipped(message) => {
            let message = escaped(message);
            let _ = writeln!(xml, ">\n      <skipped message=\"{message}\"/>\n    </testcase>");
        }
    }
}

/// Text for an attribute or an element. Characters that XML 1.0 does not allow, even escaped,
/// become the replacement character.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_counts_its_tests_and_escapes_every_text() {
        let case = |name: &str, outcome, details: &str| TestCase {
            name: name.to_owned(),
            outcome,
            details: details.to_owned(),
        };
        let suite = TestSuite {
            name: "pay.v1".to_owned(),
            duration_ms: Some(1_050),
            cases: vec![
                case("a", TestOutcome::Passed, ""),
                case("b", TestOutcome::Passed, "seen"),
                case("c", TestOutcome::Failed("<\"1\" & 2>".to_owned()), "line 1\nline\u{1b}[2"),
                case("d", TestOutcome::Skipped("no".to_owned()), ""),
            ],
        };
        assert_eq!(
            document("race", &[suite]),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="idemctl race" tests="4" failures="1" errors="0">
  <testsuite name="race pay.v1" tests="4" failures="1" errors="0" skipped="1" time="1.050">
    <testcase name="a" classname="idemctl.race.pay_v1"/>
    <testcase name="b" classname="idemctl.race.pay_v1">
      <system-out>seen</system-out>
    </testcase>
    <testcase name="c" classname="idemctl.race.pay_v1">
      <failure message="&lt;&quot;1&quot; &amp; 2&gt;" type="violation">line 1
line�[2</failure>
    </testcase>
    <testcase name="d" classname="idemctl.race.pay_v1">
      <skipped message="no"/>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }
}

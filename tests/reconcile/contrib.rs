//! The example programs of contrib/ask, each against a provider that behaves as its documentation
//! says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::provider::now_ms;
use crate::support::Runs as _;

const DAY: u64 = 86_400_000;

/// Runs an example with this question.
fn ask(
    name: &str,
    words: &[&str],
    variables: &[(&str, &str)],
    key: &str,
    age_ms: Option<u64>,
) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/ask").join(name);
    let created_at = age_ms.map(|age| rfc3339(now_ms() - age));
    let question = json!({ "format": 1, "key": key, "created_at": created_at, "attempt": 1 });
    let mut command = Command::new("python3");
    command.arg(file).args(words).envs(variables.iter().copied());
    let ran = command.fed(question.to_string().as_bytes());
    if ran.code != 0 {
        return json!({ "failed": ran.stderr });
    }
    ran.json()
}

fn rfc3339(millis: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis);
    humantime::format_rfc3339_millis(time).to_string()
}

/// A server that answers each GET with a status and a body; gives its address.
fn serves(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            let mut is_authorized = false;
            for line in lines.by_ref() {
                let line = line.unwrap();
                is_authorized |= line.to_lowercase().starts_with("authorization: ");
                if line.is_empty() {
                    break;
                }
            }
            let path = request.split(' ').nth(1).unwrap();
            let (status, body) = if is_authorized { answer(path) } else { (401, "{}".to_owned()) };
            let _ = write!(
                client,
                "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn intent(id: &str, status: &str, key: &str) -> Value {
    json!({ "id": id, "object": "payment_intent", "status": status, "metadata": { "idempotency_key": key } })
}

/// Rule: not found is not the same as not done, because the search may be behind; and the search
/// answers in pages.
#[test]
fn stripe_is_searched_to_the_last_page() {
    let base = serves(|path| {
        let page = |data: Vec<Value>, next: Option<&str>| {
            let page = json!({
                "object": "search_result", "data": data, "has_more": next.is_some(), "next_page": next,
            });
            (200, page.to_string())
        };
        if path.contains("broken") {
            return (500, "{}".to_owned());
        }
        if path.contains("paged") {
            return match path.contains("page=second") {
                true => page(vec![intent("pi_2", "succeeded", "paged")], None),
                false => page(vec![intent("pi_1", "succeeded", "PAGED")], Some("second")),
            };
        }
        let status = ["succeeded", "canceled", "processing", "requires_capture"]
            .into_iter()
            .find(|status| path.contains(status));
        match status {
            Some(status) => page(vec![intent("pi_1", status, status)], None),
            None if path.contains("twice") => page(
                vec![intent("pi_1", "succeeded", "twice"), intent("pi_2", "succeeded", "twice")],
                None,
            ),
            None => page(Vec::new(), None),
        }
    });
    let variables = [("STRIPE_API_BASE", base.as_str()), ("STRIPE_API_KEY", "rk_test")];
    let outcome = |key: &str, age| ask("stripe.py", &[], &variables, key, age)["outcome"].clone();
    assert_eq!(outcome("succeeded", Some(DAY)), "done");
    let paged = ask("stripe.py", &[], &variables, "paged", Some(DAY));
    assert_eq!((&paged["outcome"], &paged["body"]["id"]), (&"done".into(), &"pi_2".into()));
    assert_eq!(outcome("canceled", Some(DAY)), "not-done");
    for key in ["processing", "requires_capture", "twice"] {
        assert_eq!(outcome(key, Some(DAY)), "unknown", "{key}");
    }
    assert_eq!(outcome("nowhere", Some(DAY)), "not-done");
    assert_eq!(outcome("nowhere", Some(60_000)), "unknown", "the search may be behind");
    assert_eq!(outcome("nowhere", None), "unknown");
    let failed = ask("stripe.py", &[], &variables, "broken", Some(DAY));
    assert!(failed["failed"].as_str().unwrap().contains("500"), "{failed}");
    let failed = ask("stripe.py", &[], &[("STRIPE_API_BASE", &base)], "succeeded", Some(DAY));
    assert!(failed["failed"].is_string(), "{failed}");
}

/// Rule: a day's report is there only after the day, and a reference that is in no report is not done
/// only if all reports are there.
#[test]
fn adyen_is_asked_for_the_reports_of_three_days() {
    let base = serves(|path| {
        let today = rfc3339(now_ms())[..10].replace('-', "_");
        assert!(
            path.starts_with("/reports/download/MerchantAccount/Shop/payments_accounting_report_")
        );
        let tomorrow = rfc3339(now_ms() + DAY)[..10].replace('-', "_");
        if path.contains(&today) || path.contains(&tomorrow) {
            return (404, String::new());
        }
        let mut text =
            "Company Account,Merchant Account,Psp Reference,Merchant Reference,Record Type\n"
                .to_owned();
        for (key, types) in [
            ("settled", &["Received", "Authorised", "SentForSettle"][..]),
            ("refused", &["Received", "Refused"]),
            ("received", &["Received"]),
            ("cancelled", &["Received", "Authorised", "Cancelled"]),
        ] {
            for record_type in types {
                text += &format!("Co,Shop,PSP{key},{key},{record_type}\n");
            }
        }
        (200, text)
    });
    let variables = [
        ("ADYEN_BASE", base.as_str()),
        ("ADYEN_REPORT_USER", "report@Company.Co"),
        ("ADYEN_REPORT_PASSWORD", "secret"),
        ("ADYEN_MERCHANT", "Shop"),
    ];
    let outcome = |key: &str, age| ask("adyen.py", &[], &variables, key, age)["outcome"].clone();
    assert_eq!(outcome("settled", Some(5 * DAY)), "done");
    assert_eq!(outcome("refused", Some(5 * DAY)), "not-done");
    assert_eq!(outcome("received", Some(5 * DAY)), "unknown");
    assert_eq!(outcome("cancelled", Some(5 * DAY)), "unknown");
    assert_eq!(outcome("nowhere", Some(5 * DAY)), "not-done");
    assert_eq!(outcome("nowhere", Some(3_600_000)), "unknown", "today has no report yet");
    assert_eq!(outcome("nowhere", None), "unknown");
}

#[test]
fn sqlite_tells_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db").display().to_string();
    let create = "import sqlite3, sys\n\
        c = sqlite3.connect(sys.argv[1])\n\
        c.execute('CREATE TABLE orders (id INTEGER, idempotency_key TEXT, status INTEGER, body TEXT)')\n\
        c.execute('INSERT INTO orders VALUES (1, ?, 201, ?)', ('paid', '{\"id\": 1}'))\n\
        c.commit()\n";
    let ran = Command::new("python3").args(["-c", create, &file]).run();
    assert_eq!(ran.code, 0, "{}", ran.all());
    let of = |key: &str, age| ask("sql.py", &[&file], &[], key, age);
    let paid = of("paid", Some(DAY));
    assert_eq!(
        (&paid["outcome"], &paid["status"], &paid["body"]["id"]),
        (&"done".into(), &201.into(), &1.into())
    );
    assert_eq!(of("nowhere", Some(DAY))["outcome"], "not-done");
    assert_eq!(of("nowhere", Some(1_000))["outcome"], "unknown", "its transaction may be open");
    assert_eq!(of("nowhere", None)["outcome"], "unknown");
    let failed = ask("sql.py", &["/nowhere/shop.db"], &[], "paid", Some(DAY));
    assert!(failed["failed"].is_string(), "{failed}");
}

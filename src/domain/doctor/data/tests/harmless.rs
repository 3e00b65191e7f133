//! What looks like personal data, a secret or a tenant, and is none.

use super::*;

#[test]
fn masked_addresses_and_hosts_are_no_addresses_of_persons() {
    for text in [
        "e***a@firma.de",
        "mail to e*a@firma.de",
        "**a@firma.de",
        "git@github.com:org/repo.git",
        "deploy@host.example:/srv/app",
        "root@db.internal",
        "pi@printer.local",
    ] {
        let (severity, fact) = of("personal-data", bodies(&[json!(text)]));
        assert_eq!(severity, "ok", "{text}: {fact}");
    }
    for text in ["*a@firma.de*", "to anna@firma.de: done", "anna@firma.de:25", "x * a@firma.de"] {
        let (severity, fact) = of("personal-data", bodies(&[json!(text)]));
        assert_eq!(severity, "note", "{text}: {fact}");
    }
}

#[test]
fn a_cookie_is_a_secret_if_it_may_give_access() {
    for value in [
        "lang=en",
        "theme=dark; Path=/a1b2c3d4e5; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=86400000",
        "consent=accepted; Domain=shop1.example.com; SameSite=Strict123",
    ] {
        let (severity, fact) = of("stored-secrets", bodies(&[json!({"set-cookie": value})]));
        assert_eq!(severity, "ok", "{value}: {fact}");
    }
    for value in ["sid=31d4d96e", "lang=en; sid=31d4d96e", "s=abcdefghijklmnopqrst; Path=/"] {
        let (severity, fact) = of("stored-secrets", bodies(&[json!({"cookie": value})]));
        assert_eq!(severity, "warning", "{value}: {fact}");
    }
}

#[test]
fn the_name_of_a_hash_function_is_no_tenant() {
    let with_part = |part: &str| {
        let mut all = made(45, |index| format!("{part}:{index:032x}"));
        all.extend(made(5, |index| format!("{index:032x}")));
        keys("tenant-in-keys", &all).0
    };
    assert_eq!(with_part("sha256"), "ok");
    assert_eq!(with_part("SHA512"), "ok");
    assert_eq!(with_part("acme"), "note");
}

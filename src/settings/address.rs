//! Compares addresses: whether two of them belong to one server, as far as they show it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::resolved::{self, Resolved, ResolvedHost, THIS_MACHINE};
use crate::store::Address;

/// True if both addresses lead to one server: a host and port after names are resolved, a socket, or
/// a service of the same Sentinels. `None` if a name was not resolved. A service behind Sentinels
/// never equals a server that is named directly, because its master may change.
pub(super) fn is_one(one: &Address, other: &Address, resolved: &Resolved) -> Option<bool> {
    match (one, other) {
        (Address::Tcp(..), Address::Tcp(..)) => {}
        (Address::Unix(path), Address::Unix(other)) => return Some(whole(path) == whole(other)),
        // Different Sentinels may use the same service name.
        (Address::Service(one), Address::Service(other)) if one.service == other.service => {}
        _ => return Some(false),
    }
    let others = hosts(other);
    let mut is_one = Some(false);
    for (host, port) in hosts(one) {
        for (other, other_port) in &others {
            if port != *other_port {
                continue;
            }
            match resolved.meet(&host, other) {
                Some(true) => return Some(true),
                Some(false) => {}
                // Another pair of hosts may still show that it is one server.
                None => is_one = None,
            }
        }
    }
    is_one
}

/// True if the addresses alone show that they lead to one server.
pub(super) fn is_one_as_written(one: &Address, other: &Address) -> bool {
    is_one(one, other, &Resolved::default()) == Some(true)
}

/// True if one of these addresses leads to the first one's server; names are resolved only if
/// necessary. `None` if that is possible, because a name could not be resolved.
pub(super) fn is_among(one: &Address, others: &[Address]) -> Option<bool> {
    // As written first, because a lookup may take a second.
    if others.iter().any(|other| is_one_as_written(one, other)) {
        return Some(true);
    }
    let mut to_resolve = HashSet::new();
    for other in others {
        to_resolve.extend(names(one, other));
    }
    let resolved = Resolved::of(to_resolve);
    let mut is_among = Some(false);
    for other in others {
        match is_one(one, other, &resolved) {
            Some(true) => return Some(true),
            Some(false) => {}
            // Another address may still show that it is one server.
            None => is_among = None,
        }
    }
    is_among
}

/// True if the address alone shows that the server is on this machine.
pub(super) fn is_here(address: &Address) -> bool {
    match address {
        Address::Unix(_) => true,
        Address::Tcp(host, _) => {
            compared(host) == THIS_MACHINE
                || resolved::number(host).is_some_and(|ip| ip.is_loopback())
        }
        Address::Service(_) => false,
    }
}

/// The names that [`is_one`] needs; none if the port or the kind of address already
/// differs.
pub(super) fn names(one: &Address, other: &Address) -> HashSet<String> {
    let others = hosts(other);
    let mut names = HashSet::new();
    for (host, port) in hosts(one) {
        for (other, other_port) in &others {
            if *other_port != port {
                continue;
            }
            for name in [&host, other] {
                if is_name(name) {
                    names.insert(name.clone());
                }
            }
        }
    }
    names
}

fn is_name(host: &str) -> bool {
    host != THIS_MACHINE && resolved::number(host).is_none()
}

/// The hosts of an address in a comparable form, with their ports.
fn hosts(address: &Address) -> Vec<(String, u16)> {
    match address {
        Address::Tcp(host, port) => vec![(compared(host), *port)],
        Address::Service(sentinels) => {
            sentinels.addresses.iter().map(|(host, port)| (compared(host), *port)).collect()
        }
        Address::Unix(_) => Vec::new(),
    }
}

/// A host in a comparable form: names in lower case, IP addresses in their standard form.
fn compared(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    // A name with a final dot is the same name, written absolutely.
    let host = host.strip_suffix('.').unwrap_or(&host);
    match resolved::number(host).map(resolved::place) {
        Some(ResolvedHost::ThisMachine) => THIS_MACHINE.to_owned(),
        Some(ResolvedHost::At(ip)) => ip.to_string(),
        None => host.to_owned(),
    }
}

/// A socket's path without links and `..`, or as written if the file does not exist.
fn whole(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Target;

    fn is_same(one: &str, other: &str) -> bool {
        let address = |url: &str| Target::parse(url).unwrap().address;
        let (one, other) = (address(one), address(other));
        assert_eq!(
            is_one_as_written(&one, &other),
            is_one_as_written(&other, &one),
            "whichever is asked first"
        );
        is_one_as_written(&one, &other)
    }

    #[test]
    fn one_server_however_its_address_is_written() {
        for (one, other) in [
            ("redis://Cache.Internal:6379", "redis://cache.internal"),
            ("redis://cache.internal./3", "redis://cache.internal"),
            ("rediss://cache.internal:7000", "redis://ops:pw@cache.internal:7000/1"),
            ("redis://localhost:7000", "redis://127.0.0.1:7000"),
            ("redis://[::1]:7000", "redis://LOCALHOST:7000"),
            ("redis://[::1]:7000", "redis://[0:0:0:0:0:0:0:1]:7000"),
            ("redis-sentinel://a:26379,b:26379/pay", "redis-sentinel://c:26379,B:26379/pay/3"),
        ] {
            assert!(is_same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        for (one, other) in [
            ("::ffff:10.0.0.7", "10.0.0.7"),
            ("2001:DB8::1", "[2001:db8:0::1]"),
            ("::", "localhost"),
            ("0.0.0.0", "127.0.0.1"),
        ] {
            assert_eq!(compared(one), compared(other));
        }
    }

    #[test]
    fn servers_that_differ_stay_apart() {
        for (one, other) in [
            ("redis://cache.internal:6379", "redis://cache.internal:6380"),
            ("redis://127.0.0.1:7000", "redis://127.0.0.2:7000"),
            ("redis://localhost", "unix:///tmp/s"),
            ("redis-sentinel://a:26379/pay", "redis://a:26379"),
            ("redis-sentinel://a:26379/pay", "redis-sentinel://a:26379/orders"),
            ("redis-sentinel://a:26379/pay", "redis-sentinel://b:26379/pay"),
        ] {
            assert!(!is_same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn a_socket_is_one_behind_links_and_steps_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| Address::Unix(folder.path().join(name));
        fs::write(folder.path().join("s"), "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("s"), folder.path().join("link")).unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        assert!(is_one_as_written(&at("s"), &at("link")));
        assert!(is_one_as_written(&at("below/../s"), &at("link")));
        assert!(is_one_as_written(&at("not-there"), &at("not-there")));
        assert!(!is_one_as_written(&at("not-there"), &at("s")));
    }
}

//! Whether two addresses are one server's, as far as the addresses alone tell.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use crate::store::{Address, Sentinels};

/// What stands for this machine, however its address is written.
const THIS_MACHINE: &str = "localhost";

/// True when both addresses lead to one server. A service that Sentinels know is never a server that is named directly:
/// its master changes.
pub(super) fn is_one(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Tcp(host, port), Address::Tcp(other_host, other_port)) => {
            is_one_host((host, *port), (other_host, *other_port))
        }
        (Address::Unix(path), Address::Unix(other)) => whole(path) == whole(other),
        (Address::Service(one), Address::Service(other)) => is_one_service(one, other),
        _ => false,
    }
}

fn is_one_host((host, port): (&str, u16), (other, other_port): (&str, u16)) -> bool {
    port == other_port && compared(host) == compared(other)
}

/// A service's name may be another service's at other Sentinels: one Sentinel in common tells.
fn is_one_service(one: &Sentinels, other: &Sentinels) -> bool {
    let is_of_other =
        |(host, port): &(String, u16)| other.addresses.iter().any(|(at, on)| is_one_host((host, *port), (at, *on)));
    one.service == other.service && one.addresses.iter().any(is_of_other)
}

/// A host as it is compared: names in lower case, numbers in one spelling.
fn compared(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) if is_this_machine(ip) => THIS_MACHINE.to_owned(),
        Ok(ip) => ip.to_string(),
        Err(_) => host.to_owned(),
    }
}

/// Whoever connects to `0.0.0.0` or `::` is connected to this machine.
fn is_this_machine(ip: IpAddr) -> bool {
    ip.is_unspecified() || ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

/// A socket's path without links and `..`; as written where no file exists.
fn whole(path: &Path) -> PathBuf {
    fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Target;

    fn is_same(one: &str, other: &str) -> bool {
        let address = |url: &str| Target::parse(url).unwrap().address;
        let (one, other) = (address(one), address(other));
        assert_eq!(is_one(&one, &other), is_one(&other, &one), "whichever is asked first");
        is_one(&one, &other)
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
        assert!(is_one(&at("s"), &at("link")) && is_one(&at("below/../s"), &at("link")));
        assert!(is_one(&at("not-there"), &at("not-there")) && !is_one(&at("not-there"), &at("s")));
    }
}

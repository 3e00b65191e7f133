//! Resolves host names to IP addresses, and finds out which of these belong to this machine.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The name of this machine, for every notation of its address.
pub(super) const THIS_MACHINE: &str = "localhost";

/// How long to wait for all lookups together, because a lookup may take long and the command waits
/// for it. A name that is not resolved by then counts as unknown.
const PATIENCE: Duration = Duration::from_secs(1);

/// An address for documentation (RFC 5737), which no machine has. If a socket can be bound even to
/// this address, binding is no evidence of an own address.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The machine that a host's IP address leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ResolvedHost {
    ThisMachine,
    At(IpAddr),
}

/// Host names with the machines that they lead to.
#[derive(Debug, Default)]
pub(super) struct Resolved(HashMap<String, HashSet<ResolvedHost>>);

impl Resolved {
    /// Looks up these names, all at the same time. IP addresses need no lookup.
    pub(super) fn of(names: HashSet<String>) -> Self {
        let (tell, told) = mpsc::channel();
        // On many systems the machine's own name leads to 127.0.1.1, which would not count as this
        // machine.
        let own_name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
        let mut waiting = names.len();
        for name in names {
            let tell = tell.clone();
            let is_own_name = name == own_name;
            // A lookup cannot be cancelled, so it runs on a thread of its own, which ends with the
            // process.
            thread::spawn(move || {
                let mut places = HashSet::new();
                if let Ok(addresses) = (name.as_str(), 0).to_socket_addrs() {
                    for address in addresses {
                        places.insert(place(address.ip()));
                    }
                }
                if is_own_name {
                    places.insert(ResolvedHost::ThisMachine);
                }
                // After the time limit nobody receives the answer any more.
                let _ = tell.send((name, places));
            });
        }
        let mut resolved = HashMap::new();
        let until = Instant::now() + PATIENCE;
        while waiting > 0 {
            let Ok((name, places)) =
                told.recv_timeout(until.saturating_duration_since(Instant::now()))
            else {
                break;
            };
            resolved.insert(name, places);
            waiting -= 1;
        }
        Self(resolved)
    }

    /// True if both hosts, in their comparable form, lead to the same machine. `None` if one of them
    /// was not resolved.
    pub(super) fn meet(&self, one: &str, other: &str) -> Option<bool> {
        if one == other {
            return Some(true);
        }
        let one = self.places(one)?;
        let other = self.places(other)?;
        Some(!one.is_disjoint(&other))
    }

    /// The machines of a host; `None` for a name that was not resolved in time or at all.
    fn places(&self, host: &str) -> Option<HashSet<ResolvedHost>> {
        match number(host) {
            Some(ip) => Some(HashSet::from([place(ip)])),
            None if host == THIS_MACHINE => Some(HashSet::from([ResolvedHost::ThisMachine])),
            None => self.0.get(host).filter(|places| !places.is_empty()).cloned(),
        }
    }
}

/// The IP address that a host is written as.
pub(super) fn number(host: &str) -> Option<IpAddr> {
    host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// The machine of an IP address. A connection to `0.0.0.0` or `::` leads to this machine. Other
/// loopback addresses may belong to another server.
pub(super) fn place(ip: IpAddr) -> ResolvedHost {
    let ip = ip.to_canonical();
    let is_loopback = ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST;
    // A socket can be bound to every address of the loopback network, so that is no evidence.
    let is_own_address = !ip.is_loopback() && is_own(ip) && !is_own(NOBODY);
    if ip.is_unspecified() || is_loopback || is_own_address {
        ResolvedHost::ThisMachine
    } else {
        ResolvedHost::At(ip)
    }
}

/// True if this machine has the address, because only then can a socket be bound to it. Nothing is
/// sent.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cannot_be_looked_up_nobody_knows_what_it_meets() {
        let resolved = Resolved::of(HashSet::from(["no-such-host.invalid".to_owned()]));
        assert_eq!(resolved.meet("no-such-host.invalid", "127.0.0.1"), None);
        assert_eq!(resolved.meet("no-such-host.invalid", "other.invalid"), None);
        assert_eq!(resolved.meet("192.0.2.7", "127.0.0.1"), Some(false));
    }

    #[test]
    fn the_host_s_own_name_is_this_machine() {
        let name = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
        let resolved = Resolved::of(HashSet::from([name.clone()]));
        assert_eq!(resolved.meet(&name, "127.0.0.1"), Some(true), "{name}");
        assert_eq!(
            place(IpAddr::from([192, 0, 2, 7])),
            ResolvedHost::At(IpAddr::from([192, 0, 2, 7]))
        );
    }
}

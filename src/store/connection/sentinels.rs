//! The addresses of a service's Sentinels, and the service's name.

use std::fmt;

/// The addresses of a service's Sentinels, and the name by which they know it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sentinels {
    /// Host and port of each Sentinel, in the order in which they are asked.
    pub addresses: Vec<(String, u16)>,
    /// The service's name, Sentinel's `master-name`.
    pub service: String,
    pub user: Option<String>,
    /// The password of the Sentinels, which may differ from that of the servers.
    pub password: Option<String>,
}

impl Sentinels {
    /// Parses `host:port,host:port/service` of a `redis-sentinel://` URL, after the scheme and the
    /// log-in.
    pub fn parse(text: &str) -> Option<Self> {
        let (hosts, service) = text.split_once('/')?;
        if service.is_empty() {
            return None;
        }
        let addresses = hosts.split(',').map(host_and_port).collect::<Option<_>>()?;
        Some(Self { addresses, service: service.to_owned(), user: None, password: None })
    }
}

impl fmt::Debug for Sentinels {
    /// Omits the log-in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sentinels({self})")
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            self.addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(f, "{} of the Sentinels {}", self.service, names.join(","))
    }
}

/// Parses `host:port`, or `[address]:port` for IPv6.
pub(crate) fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    // An IPv6 address is written in brackets, because it contains colons.
    if let Some(rest) = host.strip_prefix('[')
        && let Some(bare) = rest.strip_suffix(']')
        && !bare.is_empty()
    {
        return Some((bare.to_owned(), port));
    }
    let is_name = !host.is_empty() && !host.contains([':', '%', '@', '[', ']']);
    if is_name { Some((host.to_owned(), port)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_sentinels_and_a_name() {
        let sentinels = Sentinels::parse("a:26379,[::1]:26380/payments").unwrap();
        assert_eq!(sentinels.addresses, [("a".to_owned(), 26_379), ("::1".to_owned(), 26_380)]);
        assert_eq!(sentinels.service, "payments");
    }

    #[test]
    fn anything_else_is_refused() {
        for wrong in ["a:1", "a:1/", "a/s", ":1/s", "a:1,/s", "ops:s3cret/s", ":s3cret%40host:1/s"]
        {
            assert_eq!(Sentinels::parse(wrong), None, "{wrong}");
        }
        let sentinels =
            Sentinels { password: Some("s3cret".to_owned()), ..Sentinels::parse("a:1/s").unwrap() };
        assert!(!format!("{sentinels:?}").contains("s3cret"));
    }
}

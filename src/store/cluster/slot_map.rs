//! Which master of a cluster owns which slots.

use std::collections::BTreeSet;

use redis::{Arg, Cmd, Value};

use crate::domain::hash_slot;
use crate::store::connection::{Address, Target, reply};

/// The slots of a cluster and their masters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct SlotMap {
    masters: Vec<Target>,
    /// The addresses of masters and replicas.
    addresses: Vec<Address>,
    /// The ids of masters and replicas, if the server lists them.
    ids: BTreeSet<String>,
    /// The index of each slot's master; `None` for a slot that no node serves.
    owners: Vec<Option<usize>>,
}

impl SlotMap {
    /// Parses the reply of `CLUSTER SLOTS`; `None` for any other reply. A node without an address
    /// is the node that was asked.
    pub(in crate::store) fn parse(slots: Value, asked: &Target) -> Option<Self> {
        let mut map = Self {
            masters: Vec::new(),
            addresses: Vec::new(),
            ids: BTreeSet::new(),
            owners: vec![None; usize::from(hash_slot::SLOTS)],
        };
        for range in reply::array(slots)? {
            let mut range = reply::array(range)?.into_iter();
            let first = usize::try_from(reply::integer(&range.next()?)?).ok()?;
            let last = usize::try_from(reply::integer(&range.next()?)?).ok()?;
            let mut master = reply::array(range.next()?)?.into_iter();
            let host = reply::word(master.next()?);
            let port = u16::try_from(reply::integer(&master.next()?)?).ok()?;
            map.add_id(master.next());
            let master = address(asked, host, port);
            map.announced(&master);
            for replica in range {
                map.add_replica(replica, asked);
            }
            let owner = map.index_of(master);
            // A range beyond the last slot is not from Redis, so the whole reply is rejected.
            map.owners.get_mut(first..=last)?.fill(Some(owner));
        }
        Some(map)
    }

    /// Adds a replica's address and id, if the reply has them.
    fn add_replica(&mut self, replica: Value, asked: &Target) {
        let mut replica = reply::array(replica).unwrap_or_default().into_iter();
        let host = replica.next().and_then(reply::word);
        let port = replica.next().as_ref().and_then(reply::integer);
        if let Some(port) = port
            && let Ok(port) = u16::try_from(port)
        {
            self.announced(&address(asked, host, port));
        }
        self.add_id(replica.next());
    }

    /// Adds the id of a node, if the reply has one.
    fn add_id(&mut self, id: Option<Value>) {
        if let Some(id) = id.and_then(reply::word) {
            self.ids.insert(id);
        }
    }

    fn announced(&mut self, node: &Target) {
        if !self.addresses.contains(&node.address) {
            self.addresses.push(node.address.clone());
        }
    }

    /// The addresses of all nodes, as the nodes announce them.
    pub(in crate::store) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    pub(in crate::store) fn masters(&self) -> &[Target] {
        &self.masters
    }

    /// The ids of all nodes. A node keeps its id when its address or its role changes.
    pub(in crate::store) fn ids(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(String::as_str)
    }

    pub(in crate::store) fn master(&self, slot: u16) -> Option<&Target> {
        let owner = self.owners[usize::from(slot)]?;
        Some(&self.masters[owner])
    }

    /// The slots that no node serves.
    pub(in crate::store) fn unserved(&self) -> Vec<u16> {
        (0..hash_slot::SLOTS).filter(|slot| self.master(*slot).is_none()).collect()
    }

    /// The slots that the master with this name serves.
    pub(in crate::store) fn slots_of(&self, master: &str) -> Vec<u16> {
        let Some(index) = self.masters.iter().position(|known| known.to_string() == master) else {
            return Vec::new();
        };
        let mut slots = Vec::new();
        for slot in 0..hash_slot::SLOTS {
            if self.owners[usize::from(slot)] == Some(index) {
                slots.push(slot);
            }
        }
        slots
    }

    /// Records that the slot now belongs to this node.
    pub(in crate::store) fn moved(&mut self, slot: u16, to: Target) {
        let owner = self.index_of(to);
        self.owners[usize::from(slot)] = Some(owner);
    }

    /// The slots that have a different master than in `before`.
    pub(in crate::store) fn moved_since(&self, before: &Self) -> Vec<u16> {
        (0..hash_slot::SLOTS).filter(|slot| self.master(*slot) != before.master(*slot)).collect()
    }

    /// A node of `before` that is no longer a master, and the node that now serves its slots and was
    /// none then. Slots that migrated went to a node that was a master already: nothing was lost.
    pub(in crate::store) fn taken_over<'a>(
        &'a self,
        before: &'a Self,
    ) -> Option<(&'a Target, &'a Target)> {
        // This is asked after each batch of changes, and the masters are few.
        if before.masters.iter().all(|master| self.masters.contains(master)) {
            return None;
        }
        for slot in 0..hash_slot::SLOTS {
            let (Some(old), Some(new)) = (before.master(slot), self.master(slot)) else {
                continue;
            };
            if !self.masters.contains(old) && !before.masters.contains(new) {
                return Some((old, new));
            }
        }
        None
    }

    fn index_of(&mut self, master: Target) -> usize {
        if let Some(index) = self.masters.iter().position(|known| *known == master) {
            return index;
        }
        self.masters.push(master);
        self.masters.len() - 1
    }
}

/// Parses the text of MOVED and ASK, `<slot> <host>:<port>`, into a node of the same cluster as
/// `like`.
pub(in crate::store) fn redirect(why: &str, like: &Target) -> Option<(u16, Target)> {
    let mut words = why.split_whitespace();
    let slot = words.next()?.parse().ok()?;
    if slot >= hash_slot::SLOTS {
        return None;
    }
    // At the last colon, because an IPv6 address contains colons as well.
    let (host, port) = words.next()?.rsplit_once(':')?;
    Some((slot, address(like, Some(host.to_owned()), port.parse().ok()?)))
}

/// A node of the same cluster as `like`, on the host of `like` if the server names none.
pub(super) fn address(like: &Target, host: Option<String>, port: u16) -> Target {
    // An empty host and `?` both mean that the server names none.
    let host = match (host, &like.address) {
        (Some(host), _) if !host.is_empty() && host != "?" => host,
        (_, Address::Tcp(own, _)) => own.clone(),
        (_, Address::Unix(_) | Address::Service(_)) => "127.0.0.1".to_owned(),
    };
    Target { address: Address::Tcp(host, port), ..like.clone() }
}

/// The Redis key that decides which node serves a command; `None` if any node may answer it.
pub(in crate::store) fn key_of(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter().filter_map(|word| match word {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    let name = words.next()?.to_ascii_uppercase();
    match name.as_slice() {
        b"EVAL" | b"EVALSHA" | b"EVAL_RO" | b"EVALSHA_RO" => {
            let count = words.nth(1)?;
            if count == b"0" { None } else { words.next() }
        }
        // Their key follows a subcommand.
        b"MEMORY" | b"OBJECT" => words.nth(1),
        b"TIME" | b"SCRIPT" | b"INFO" | b"ROLE" | b"PING" | b"CLUSTER" | b"CLIENT" | b"CONFIG" => {
            None
        }
        _ => words.next(),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn asked() -> Target {
        Target::parse("redis://u:p@10.0.0.1:7000").unwrap()
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let master = Value::Array(vec![text(host), Value::Int(port), text("id")]);
        let replica = Value::Array(vec![text("10.0.0.9"), Value::Int(7009), text("id")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    #[test]
    fn slots_have_masters_and_a_node_without_address_is_the_asked_one() {
        let slots = Value::Array(vec![
            range(0, 100, "", 7000),
            range(101, 200, "10.0.0.2", 7001),
            range(300, 300, "", 7000),
        ]);
        let map = SlotMap::parse(slots, &asked()).unwrap();
        assert_eq!(map.masters().len(), 2);
        let of = |slot| map.master(slot).map(ToString::to_string);
        assert_eq!(of(100).as_deref(), Some("10.0.0.1:7000/0"));
        assert_eq!(of(101).as_deref(), Some("10.0.0.2:7001/0"));
        assert_eq!((of(201), of(300).is_some()), (None, true));
        assert_eq!(
            map.master(150).unwrap().password.as_deref(),
            Some("p"),
            "the same log-in everywhere"
        );
    }

    #[test]
    fn slots_without_a_node_are_told() {
        let slots =
            Value::Array(vec![range(0, 100, "", 7000), range(102, 16_383, "10.0.0.2", 7001)]);
        let map = SlotMap::parse(slots, &asked()).unwrap();
        assert_eq!(map.unserved(), [101]);
        assert_eq!(map.slots_of("10.0.0.1:7000/0").len(), 101);
        assert_eq!(
            SlotMap::parse(Value::Array(Vec::new()), &asked()).unwrap().unserved().len(),
            16_384
        );
    }

    #[test]
    fn what_is_no_slot_map_is_refused() {
        for wrong in [
            Value::Nil,
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 16_384, "", 1)]),
        ] {
            assert_eq!(SlotMap::parse(wrong, &asked()), None);
        }
    }

    #[test]
    fn a_redirect_names_slot_and_node() {
        let (slot, node) = redirect("3999 10.0.0.3:7002", &asked()).unwrap();
        assert_eq!((slot, node.to_string().as_str()), (3_999, "10.0.0.3:7002/0"));
        assert_eq!(redirect("3999 :7002", &asked()).unwrap().1.to_string(), "10.0.0.1:7002/0");
        assert_eq!(redirect("1 ::1:7002", &asked()).unwrap().1.to_string(), "[::1]:7002/0");
        for wrong in ["", "x 10.0.0.3:7002", "16384 h:1", "1 h", "1 h:x"] {
            assert!(redirect(wrong, &asked()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn moved_slots_are_told() {
        let before = SlotMap::parse(Value::Array(vec![range(0, 10, "", 7000)]), &asked()).unwrap();
        let mut after = before.clone();
        after.moved(3, redirect("3 10.0.0.2:7001", &asked()).unwrap().1);
        assert_eq!(after.moved_since(&before), [3]);
        assert_eq!(before.moved_since(&before), [0u16; 0]);
    }

    #[test]
    fn a_master_without_slots_was_taken_over_and_one_that_gave_some_away_was_not() {
        let of = |first, second| {
            let slots = Value::Array(vec![range(0, 10, first, 7000), range(11, 20, second, 7000)]);
            SlotMap::parse(slots, &asked()).unwrap()
        };
        let before = of("10.0.0.1", "10.0.0.2");
        let (old, new) = (of("10.0.0.1", "10.0.0.3"), before.clone());
        let names = |taken: Option<(&Target, &Target)>| {
            taken.map(|(from, to)| (from.to_string(), to.to_string()))
        };
        let taken = names(old.taken_over(&before));
        assert_eq!(taken, Some(("10.0.0.2:7000/0".to_owned(), "10.0.0.3:7000/0".to_owned())));
        assert_eq!(names(new.taken_over(&before)), None);
        // A master that gave all its slots to another, and became its replica.
        let emptied =
            SlotMap::parse(Value::Array(vec![range(0, 20, "10.0.0.1", 7000)]), &asked()).unwrap();
        assert_eq!(names(emptied.taken_over(&before)), None);
        let mut given = before.clone();
        given.moved(3, redirect("3 10.0.0.3:7002", &asked()).unwrap().1);
        assert_eq!(names(given.taken_over(&before)), None);
    }
}

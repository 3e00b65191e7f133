//! How the seven services are deployed in a storm: TTLs of their own, none the schema's default, and keys that tell whose
//! they are.

use std::time::Duration;

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::Schema;
use idemctl::domain::step::inputs::StepInputs;
use idemctl::schemas;

/// From one second to eight hours, one for each schema; none is any schema's default.
const LOCK_TTLS: [u64; 7] = [1, 3, 20, 90, 600, 3_600, 28_800];

/// Short, so that results grow old within a storm.
const RESULT_TTLS: [u64; 7] = [12, 15, 18, 20, 25, 35, 45];

/// The prefix of the keys of every schema that takes one.
pub const PREFIX: &str = "pay:";

/// The owner in a lock's value, up to which all locks of a schema are alike.
const ANYBODY: &str = "@";

/// What a Redis key is to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Lock first, and then the result.
    Both,
    Lock,
    Result,
}

/// One service.
pub struct Deployment {
    pub schema: Schema,
    /// The beginnings of its Redis keys, by their roles.
    beginnings: Vec<(Vec<u8>, Role)>,
    lock_beginning: Vec<u8>,
    tagged: bool,
}

impl Deployment {
    /// An idempotency key of this service's.
    pub fn key(&self, name: &str) -> String {
        let key = format!("{}.{name}", self.schema.name);
        if self.tagged { format!("{{{key}}}") } else { key }
    }

    /// True when the value, at a Redis key of this role, is a lock.
    pub fn is_lock(&self, role: Role, value: &[u8]) -> bool {
        match role {
            Role::Lock => true,
            Role::Result => false,
            Role::Both => value.starts_with(&self.lock_beginning),
        }
    }

    /// The Redis key of the result beside a lock's.
    pub fn result_beside(&self, lock: &[u8]) -> Option<Vec<u8>> {
        let of = |role| {
            self.beginnings
                .iter()
                .find(move |(_, of)| *of == role)
                .map(|(beginning, _)| &beginning[..])
        };
        Some([of(Role::Result)?, lock.strip_prefix(of(Role::Lock)?)?].concat())
    }

    /// True when its locks name who holds them.
    pub fn names_owner(&self) -> bool {
        let response = Response::default();
        let lock = StepInputs::new(&self.schema, b"k", ANYBODY, &response).lock_value();
        lock.windows(ANYBODY.len()).any(|part| part == ANYBODY.as_bytes())
    }

    fn of(schema: Schema, on_cluster: bool) -> Self {
        // Where a record's Redis keys have to be in one slot the client's key is a hash tag.
        let roles = match schema.redis_keys(b"k").len() {
            1 => &[Role::Both][..],
            _ => &[Role::Lock, Role::Result],
        };
        let tagged = on_cluster && roles.len() > 1;
        let response = Response::default();
        let lock = StepInputs::new(&schema, b"k", ANYBODY, &response).lock_value();
        let until =
            lock.iter().position(|byte| *byte == ANYBODY.as_bytes()[0]).unwrap_or(lock.len());
        let mut deployment =
            Self { schema, beginnings: Vec::new(), lock_beginning: lock[..until].to_vec(), tagged };
        let stem = deployment.key("").trim_end_matches('}').to_owned();
        let redis_keys = deployment.schema.redis_keys(stem.as_bytes());
        deployment.beginnings = redis_keys.into_iter().zip(roles.iter().copied()).collect();
        deployment
    }
}

/// All services of a storm.
pub struct Deployments(Vec<Deployment>);

impl Deployments {
    /// Deals the TTLs out.
    pub fn deal(rng: &mut fastrand::Rng, on_cluster: bool) -> Self {
        let (mut locks, mut results) = (LOCK_TTLS, RESULT_TTLS);
        rng.shuffle(&mut locks);
        rng.shuffle(&mut results);
        let plain = schemas::load(None, |_| schemas::Deployment::default()).unwrap().schemas;
        assert_eq!(plain.len(), locks.len(), "a TTL for each schema");
        let at = |name: &str| plain.iter().position(|schema| schema.name == name).unwrap();
        let deployed = schemas::load(None, |name| schemas::Deployment {
            prefix: plain[at(name)].takes_prefix.then(|| PREFIX.to_owned()),
            shared_prefix: None,
            lock_ttl: Some(Duration::from_secs(locks[at(name)])),
            result_ttl: Some(Duration::from_secs(results[at(name)])),
            ..schemas::Deployment::default()
        });
        let deployed =
            deployed.unwrap().schemas.into_iter().map(|schema| Deployment::of(schema, on_cluster));
        Self(deployed.collect())
    }

    /// Each of them.
    pub fn all(&self) -> &[Deployment] {
        &self.0
    }

    /// Whose a Redis key is, and its role; nothing for a stranger's.
    pub fn find(&self, redis_key: &[u8]) -> Option<(&Deployment, Role)> {
        self.0.iter().find_map(|deployment| {
            let role = deployment
                .beginnings
                .iter()
                .find(|(beginning, _)| redis_key.starts_with(beginning));
            role.map(|(_, role)| (deployment, *role))
        })
    }

    /// The config file in which all this is stated.
    pub fn config(&self, url: &str) -> String {
        let mut text = format!("[contexts.storm]\nurl = \"{url}\"\n");
        for Deployment { schema, .. } in &self.0 {
            let (lock, result) = (schema.lock_ttl.as_secs(), schema.result_ttl.as_secs());
            text += &format!("[contexts.storm.deployment.{}]\n", schema.name);
            text += &format!("lock_ttl = \"{lock}s\"\nresult_ttl = \"{result}s\"\n");
            if schema.takes_prefix {
                text += &format!("prefix = \"{PREFIX}\"\n");
            }
        }
        text
    }
}

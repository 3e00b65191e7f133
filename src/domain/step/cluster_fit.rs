//! Whether the steps of a schema can run on a cluster, where a script works on the Redis keys of one hash slot alone.

use super::request::Request;
use crate::domain::hash_slot;
use crate::domain::record::Response;
use crate::domain::schema::{Action, Schema};

/// Why the scripts of a schema cannot run on a cluster for this idempotency key, with the hash slots named; `None` when
/// they can.
pub(crate) fn problem(schema: &Schema, key: &[u8]) -> Option<String> {
    let record = schema.redis_keys(key);
    let response = Response::default();
    let request = Request::new(schema, key, "", &response);
    schema.steps().flat_map(|step| &step.calls).find_map(|call| {
        let Action::Script { name, keys, .. } = &call.action else { return None };
        let named: Vec<_> = keys.iter().map(|template| request.word(template)).collect();
        let unnamed = keys.iter().any(|template| !template.is_redis_key());
        let all: Vec<&[u8]> = named.iter().chain(record.iter().filter(|_| unnamed)).map(Vec::as_slice).collect();
        let why = if unnamed { "it builds Redis keys that KEYS does not name" } else { "its Redis keys are apart" };
        (unnamed || !hash_slot::is_one(all.iter().copied()))
            .then(|| format!("{name} cannot run on a cluster, {why}: {}", hash_slot::words(all)))
    })
}

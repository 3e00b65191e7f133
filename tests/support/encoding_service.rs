//! A service whose script encodes the response again, as many do that are written with cjson.

/// Its schema.
pub const ANEW: &str = r#"
format = 2
name = "anew"
summary = "a script that encodes the result again"

[keys]
record = "anew:{key}"

[ttl]
lock = "30s"
result = "1h"

[[value]]
name = "lock"
where = { "/s" = "P" }
required = ["/s"]
state = "in-progress"

[[value]]
name = "done"
where = { "/s" = "D" }
required = ["/s", "/code", "/headers", "/body"]
state = "completed"
fields = { status = "/code", headers = "/headers", body = "/body" }
body_encoding = "json"

[write]
lock_value = '{"s":"P"}'
result_value = '{"s":"D","code":{status},"headers":{headers},"body":{body_json}}'
headers_as = "one"

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "GET", "EX", "{lock_ttl}"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "lock", means = "conflict" },
  { value = "done", means = "replay" },
]

[complete]
checks_owner = false

[[complete.call]]
script = "store"
keys = ["{record}"]
args = ["{result_value}", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Its script `store`.
pub const STORE: &str = "local result = cjson.decode(ARGV[1])\n\
    redis.call('SET', KEYS[1], cjson.encode(result), 'EX', ARGV[2])\nreturn 'OK'\n";

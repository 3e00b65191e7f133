-- hash_begin: create the record with the fields of a lock, unless there is a record.
--
-- KEYS[1]     record_key   the Redis key of the record, a hash
-- ARGV[1]     lock_ttl_ms  TTL of the lock in milliseconds; empty for none
-- ARGV[2..m]  fields       the fields of a lock: name, value, name, value, ...
--
-- Replies
--   1  the lock is taken
--   0  there is a record
--

local record_key = KEYS[1]
local lock_ttl_ms = ARGV[1]
local fields = {unpack(ARGV, 2)}

if redis.call('EXISTS', record_key) == 1 then
  return 0
end
redis.call('HSET', record_key, unpack(fields))
if lock_ttl_ms ~= '' then
  redis.call('PEXPIRE', record_key, lock_ttl_ms)
end
return 1

-- hash_complete: set the fields of a result, if the record is still the lock of this owner.
--
-- KEYS[1]     record_key     the Redis key of the record, a hash
-- ARGV[1]     owner          the owner that the record must name
-- ARGV[2]     owner_field    the field that names it; empty if the service does not compare it
-- ARGV[3]     lock_fields    the other fields of a lock, as a JSON object of texts
-- ARGV[4]     result_ttl_ms  TTL of the result in milliseconds; empty for none
-- ARGV[5..m]  fields         the fields of a result: name, value, name, value, ...
--
-- Replies
--   1  stored; other fields stay
--   0  there is no such lock, or it has another owner
--   error WRONGTYPE  the Redis key holds another type
--   error ERR  lock_fields is not JSON
--

local record_key = KEYS[1]
local owner = ARGV[1]
local owner_field = ARGV[2]
local lock_fields = ARGV[3]
local result_ttl_ms = ARGV[4]
local fields = {unpack(ARGV, 5)}

if owner_field ~= '' and redis.call('HGET', record_key, owner_field) ~= owner then
  return 0
end
for name, text in pairs(cjson.decode(lock_fields)) do
  if redis.call('HGET', record_key, name) ~= text then
    return 0
  end
end
redis.call('HSET', record_key, unpack(fields))
if result_ttl_ms == '' then
  redis.call('PERSIST', record_key)
else
  redis.call('PEXPIRE', record_key, result_ttl_ms)
end
return 1

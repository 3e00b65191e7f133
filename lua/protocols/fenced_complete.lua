-- fenced_complete: store the result and give the lock up, if the lock still has this owner.
--
-- KEYS[1]  lock_key       the Redis key of the lock
-- KEYS[2]  result_key     the Redis key of the result; the same one if one key holds both
-- ARGV[1]  owner          the owner that the lock must name
-- ARGV[2]  owner_path     where the lock names it: a JSON array of member names; [] for the whole value
-- ARGV[3]  result_value   the result
-- ARGV[4]  result_ttl_ms  TTL of the result in milliseconds; empty for none
--
-- Replies
--   1  stored
--   0  there is no such lock, or it has another owner
--   error WRONGTYPE  a Redis key holds another type
--   error ERR  owner_path is not JSON
--

local lock_key = KEYS[1]
local result_key = KEYS[2]
local owner = ARGV[1]
local owner_path = ARGV[2]
local result_value = ARGV[3]
local result_ttl_ms = ARGV[4]

local held = redis.call('GET', lock_key)
for _, name in ipairs(cjson.decode(owner_path)) do
  if type(held) == 'string' then
    local is_json, decoded = pcall(cjson.decode, held)
    held = is_json and decoded
  end
  held = type(held) == 'table' and held[name]
end
if held ~= owner then
  return 0
end
-- The result first: if SET is refused (a bad TTL, no memory), the lock stays.
if result_ttl_ms == '' then
  redis.call('SET', result_key, result_value)
else
  redis.call('SET', result_key, result_value, 'PX', result_ttl_ms)
end
if lock_key ~= result_key then
  redis.call('DEL', lock_key)
end
return 1

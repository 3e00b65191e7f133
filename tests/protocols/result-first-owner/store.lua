-- store: store the result and remove the lock, if the caller holds it.
--
-- KEYS[1]  result      p:done:{key}
-- KEYS[2]  lock        p:lock:{key}
-- ARGV[1]  owner       the token of the caller
-- ARGV[2]  value       the result
-- ARGV[3]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   1  stored
--   0  another owner holds the lock, or there is no lock
--

local result = KEYS[1]
local lock = KEYS[2]
local owner = ARGV[1]
local value = ARGV[2]
local result_ttl = ARGV[3]

if redis.call('GET', lock) ~= owner then
  return 0
end
redis.call('SET', result, value, 'EX', result_ttl)
redis.call('DEL', lock)
return 1

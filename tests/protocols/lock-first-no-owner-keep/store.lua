-- store: store the result and remove the lock, whoever holds it.
--
-- KEYS[1]  result      p:done:{key}
-- KEYS[2]  lock        p:lock:{key}
-- ARGV[1]  value       the result
-- ARGV[2]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   1  stored
--

local result = KEYS[1]
local lock = KEYS[2]
local value = ARGV[1]
local result_ttl = ARGV[2]

redis.call('SET', result, value, 'EX', result_ttl)
redis.call('DEL', lock)
return 1

-- take: take the lock if nobody else holds it, and give it its whole TTL.
--
-- KEYS[1]  lock      m:{key}
-- ARGV[1]  value     the caller's lock
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   1  the caller holds the lock
--   0  another request holds the lock
--

local lock = KEYS[1]
local value = ARGV[1]
local lock_ttl = ARGV[2]

local held = redis.call('GET', lock)
if held and held ~= value then
  return 0
end
redis.call('SET', lock, value, 'EX', lock_ttl)
return 1

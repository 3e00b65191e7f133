-- take: take the lock if nobody holds it.
--
-- KEYS[1]  lock      m:{key}
-- ARGV[1]  owner     the token of the caller
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   1  the caller holds the lock
--   0  another request holds the lock
--

local lock = KEYS[1]
local owner = ARGV[1]
local lock_ttl = ARGV[2]

if redis.call('EXISTS', lock) == 1 then
  return 0
end
redis.call('HSET', lock, 'by', owner)
redis.call('EXPIRE', lock, lock_ttl)
return 1

-- renew: give the caller's own lock its whole TTL again.
--
-- KEYS[1]  lock      m:{key}
-- ARGV[1]  value     the caller's lock
-- ARGV[2]  lock_ttl  TTL of the lock in milliseconds
--
-- Replies
--   1  renewed
--   0  another owner holds the lock, or there is no lock
--

local lock = KEYS[1]
local value = ARGV[1]
local lock_ttl = ARGV[2]

if redis.call('GET', lock) == value then
  return redis.call('PEXPIRE', lock, lock_ttl)
end
return 0

-- release: remove the caller's own lock.
--
-- KEYS[1]  lock   m:{key}
-- ARGV[1]  value  the caller's lock
--
-- Replies
--   1  removed
--   0  another owner holds the lock, or there is no lock
--

local lock = KEYS[1]
local value = ARGV[1]

if redis.call('GET', lock) == value then
  return redis.call('DEL', lock)
end
return 0

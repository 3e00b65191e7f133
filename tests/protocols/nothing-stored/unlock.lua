-- unlock: remove the lock, if it is the caller's.
--
-- KEYS[1]  lock   p:lock:{key}
-- ARGV[1]  owner  the token of the caller
--
-- Replies
--   1  removed
--   0  the lock is another's, or gone
--

local lock = KEYS[1]
local owner = ARGV[1]

if redis.call('GET', lock) == owner then
  return redis.call('DEL', lock)
end
return 0

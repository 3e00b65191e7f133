-- release: remove the caller's own lock.
--
-- KEYS[1]  lock   m:{key}
-- ARGV[1]  owner  the token of the caller
--
-- Replies
--   1  removed
--   0  another owner holds the lock, or there is no lock
--

local lock = KEYS[1]
local owner = ARGV[1]

if redis.call('HGET', lock, 'by') == owner then
  return redis.call('DEL', lock)
end
return 0

-- release: give the lock up, if the lock is still this request's.
--
-- KEYS[1]  lock_key  {prefix}lock:idempotency:{user}:{key}
-- ARGV[1]  owner     the 16 letters that the lock was taken with
--
-- Replies
--   1                the lock is deleted
--   0                the lock is gone, or another request's; nothing changed
--   error WRONGTYPE  the lock's Redis key is not a string
--

local lock_key = KEYS[1]
local owner = ARGV[1]

if redis.call('GET', lock_key) ~= owner then
  return 0
end

return redis.call('DEL', lock_key)

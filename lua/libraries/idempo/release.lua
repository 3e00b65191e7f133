-- release: give the lock up, if the lock is still this request's.
--
-- KEYS[1]  lock_key  idempo:lock:{key}
-- ARGV[1]  token     the random bytes that the lock was taken with
--
-- Replies
--   ok               the lock is deleted
--   stale            the lock is gone, or another request's; nothing changed
--   error WRONGTYPE  the lock's Redis key is not a string
--

local lock_key = KEYS[1]
local token = ARGV[1]

if redis.call('GET', lock_key) ~= token then
  return 'stale'
end

redis.call('DEL', lock_key)
return 'ok'

-- extend: give the caller's own lock its whole TTL again.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  owner     the token of the caller
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   1  extended
--   0  another owner holds the lock, or there is no lock
--

local record = KEYS[1]
local owner = ARGV[1]
local lock_ttl = ARGV[2]

local stored = redis.call('GET', record)
if not stored then
  return 0
end
local lock = cjson.decode(stored)
if lock.st == 'held' and lock.by == owner then
  return redis.call('EXPIRE', record, lock_ttl)
end
return 0

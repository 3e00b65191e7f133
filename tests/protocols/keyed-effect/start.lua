-- start: take the lock, or say what is there.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  lock      the value of a lock
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   YOURS   the caller holds the lock
--   HELD    another request holds the lock
--   <text>  the stored result
--

local record = KEYS[1]
local lock = ARGV[1]
local lock_ttl = ARGV[2]

local stored = redis.call('GET', record)
if not stored then
  redis.call('SET', record, lock, 'EX', lock_ttl)
  return 'YOURS'
end
if cjson.decode(stored).st == 'held' then
  return 'HELD'
end
return stored

-- start: take the lock, or say what is there.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  lock      the value of a lock
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
-- ARGV[3]  payload   the hash of the payload
--
-- Replies
--   YOURS   the caller holds the lock
--   OTHER   the key belongs to another payload
--   HELD    another request holds the lock
--   <text>  the stored result
--

local record = KEYS[1]
local lock = ARGV[1]
local lock_ttl = ARGV[2]
local payload = ARGV[3]

local stored = redis.call('GET', record)
if not stored then
  redis.call('SET', record, lock, 'EX', lock_ttl)
  return 'YOURS'
end
local found = cjson.decode(stored)
if found.fp ~= payload then
  return 'OTHER'
end
if found.st == 'held' then
  return 'HELD'
end
return stored

-- start: take the lock, or say what is there.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  lock      the value of a lock
-- ARGV[2]  ttl       TTL of the Redis key, whole seconds
--
-- Replies
--   YOURS   the caller holds the lock
--   HELD    another request holds the lock
--   <text>  the stored result
--

local record = KEYS[1]
local lock = ARGV[1]
local ttl = ARGV[2]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('GET', record)
local found = stored and cjson.decode(stored)
if not stored or found.st == 'held' and found['until'] <= now then
  redis.call('SET', record, lock, 'EX', ttl)
  return 'YOURS'
end
if found.st == 'held' then
  return 'HELD'
end
return stored

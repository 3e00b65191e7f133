-- start: take the lock, or say what is there.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  lock      the value of a lock
-- ARGV[2]  now       the time in seconds
--
-- Replies
--   YOURS   the caller holds the lock
--   HELD    another request holds the lock
--   <text>  the stored result
--

local record = KEYS[1]
local lock = ARGV[1]
local now = ARGV[2]

local stored = redis.call('GET', record)
local found = stored and cjson.decode(stored)
if not stored or found['until'] <= tonumber(now) then
  redis.call('SET', record, lock, 'EX', 172800)
  return 'YOURS'
end
if found.st == 'held' then
  return 'HELD'
end
return stored

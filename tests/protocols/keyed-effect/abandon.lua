-- abandon: remove the caller's own lock.
--
-- KEYS[1]  record  p:{key}
-- ARGV[1]  owner   the token of the caller
--
-- Replies
--   1  removed
--   0  another owner holds the lock, or there is no lock
--

local record = KEYS[1]
local owner = ARGV[1]

local stored = redis.call('GET', record)
if not stored then
  return 0
end
local lock = cjson.decode(stored)
if lock.st == 'held' and lock.by == owner then
  return redis.call('DEL', record)
end
return 0

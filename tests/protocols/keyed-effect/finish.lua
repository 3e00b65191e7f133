-- finish: store the result over the caller's own lock.
--
-- KEYS[1]  record      p:{key}
-- ARGV[1]  owner       the token of the caller
-- ARGV[2]  value       the result
-- ARGV[3]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   STORED  stored
--   LOST    another owner holds the lock, or there is no lock
--

local record = KEYS[1]
local owner = ARGV[1]
local value = ARGV[2]
local result_ttl = ARGV[3]

local stored = redis.call('GET', record)
if not stored then
  return 'LOST'
end
local lock = cjson.decode(stored)
if lock.st ~= 'held' or lock.by ~= owner then
  return 'LOST'
end
redis.call('SET', record, value, 'EX', result_ttl)
return 'STORED'

-- finish: store the result in the caller's own hash.
--
-- KEYS[1]  record      p:{key}
-- ARGV[1]  owner       the token of the caller
-- ARGV[2]  status      the status code
-- ARGV[3]  body        the body
-- ARGV[4]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   STORED  stored
--   LOST    another owner holds the lock, or there is no lock
--

local record = KEYS[1]
local owner = ARGV[1]
local status = ARGV[2]
local body = ARGV[3]
local result_ttl = ARGV[4]

local found = redis.call('HMGET', record, 'st', 'by')
if found[1] ~= 'held' or found[2] ~= owner then
  return 'LOST'
end
redis.call('HSET', record, 'st', 'done', 'code', status, 'body', body)
redis.call('EXPIRE', record, result_ttl)
return 'STORED'

-- finish: store the result in whatever hash is there.
--
-- KEYS[1]  record      p:{key}
-- ARGV[1]  owner       the token of the caller
-- ARGV[2]  status      the status code
-- ARGV[3]  body        the body
-- ARGV[4]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   STORED  stored
--   LOST    the hash is gone
--

local record = KEYS[1]
local owner = ARGV[1]
local status = ARGV[2]
local body = ARGV[3]
local result_ttl = ARGV[4]

if redis.call('EXISTS', record) == 0 then
  return 'LOST'
end
redis.call('HSET', record, 'st', 'done', 'by', owner, 'code', status, 'body', body)
redis.call('EXPIRE', record, result_ttl)
return 'STORED'

-- finish: store the result in the hash.
--
-- KEYS[1]  record      p:{key}
-- ARGV[1]  status      the status code
-- ARGV[2]  body        the body
-- ARGV[3]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   STORED  stored
--   LOST    the hash is gone
--

local record = KEYS[1]
local status = ARGV[1]
local body = ARGV[2]
local result_ttl = ARGV[3]

if redis.call('EXISTS', record) == 0 then
  return 'LOST'
end
redis.call('HSET', record, 'st', 'done', 'code', status, 'body', body)
redis.call('EXPIRE', record, result_ttl)
return 'STORED'

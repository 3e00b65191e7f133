-- set_completed: replace the lock by the response.
--
-- KEYS[1]  record      idempotency:{key}
-- ARGV[1]  completed   the JSON to store, status COMPLETED
-- ARGV[2]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   OK               stored
--   ERROR            the key is gone or not PENDING; nothing changed
--   error WRONGTYPE  the Redis key is not a string
--

local record = KEYS[1]
local completed = ARGV[1]
local result_ttl = ARGV[2]

local stored = redis.call('GET', record)
if not stored then
  return 'ERROR'
end

-- Text that is not JSON is not PENDING either.
local readable, decoded = pcall(cjson.decode, stored)
if not readable or type(decoded) ~= 'table' or decoded.status ~= 'PENDING' then
  return 'ERROR'
end

-- Whose lock it is cannot be seen: the value names no owner.
redis.call('SET', record, completed, 'EX', result_ttl)
return 'OK'

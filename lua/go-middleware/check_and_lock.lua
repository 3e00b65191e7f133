-- check_and_lock: take the lock, or say what is already there.
--
-- KEYS[1]  record    idempotency:{key}
-- ARGV[1]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   PROCEED          the key was absent and is now locked
--   CONFLICT         another request holds the lock (PENDING)
--   <text>           the stored response, as it is (COMPLETED)
--   ERROR            JSON with any other status, or without one
--   error ERR        the value is not JSON, e.g. written by the older release
--   error WRONGTYPE  the Redis key is not a string
--

local record = KEYS[1]
local lock_ttl = ARGV[1]

local stored = redis.call('GET', record)
if not stored then
  redis.call('SET', record, '{"status":"PENDING"}', 'NX', 'EX', lock_ttl)
  return 'PROCEED'
end

-- Not guarded by pcall: the service fails here on a plain word, and so must we.
local decoded = cjson.decode(stored)
local status = type(decoded) == 'table' and decoded.status
if status == 'PENDING' then
  return 'CONFLICT'
end
if status == 'COMPLETED' then
  -- Decoded only to look: encoding it again would lose digits and empty arrays.
  return stored
end
return 'ERROR'

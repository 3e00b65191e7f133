-- start_processing: take the lock, or say what is already there.
--
-- KEYS[1]  record    idem:{key}
-- ARGV[1]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   PROCEED              the key was absent and is now locked
--   CONFLICT             another request holds the lock (IN_PROGRESS)
--   <text>               the stored JSON, as it is (COMPLETED)
--   ERROR_UNKNOWN_STATE  any other status or none, text that is not JSON included
--   error WRONGTYPE      the Redis key is not a string
--

local record = KEYS[1]
local lock_ttl = ARGV[1]

local stored = redis.call('GET', record)
if not stored then
  redis.call('SET', record, '{"status":"IN_PROGRESS"}', 'NX', 'EX', lock_ttl)
  return 'PROCEED'
end

local readable, decoded = pcall(cjson.decode, stored)
local status = readable and type(decoded) == 'table' and decoded.status
if status == 'IN_PROGRESS' then
  return 'CONFLICT'
end
if status == 'COMPLETED' then
  -- Decoded only to look: encoding it again would lose digits and empty arrays.
  return stored
end
return 'ERROR_UNKNOWN_STATE'

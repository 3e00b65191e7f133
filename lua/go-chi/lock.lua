-- lock: take the lock, or hand out the stored response.
--
-- KEYS[1]  record    {prefix}{key}, by default {key} alone
-- ARGV[1]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   nil              the key was absent and is now locked
--   <text>           the stored JSON, as it is (status 1)
--   error LOCKED     anything else is there, text that is not JSON included
--   error WRONGTYPE  the Redis key is not a string
--

local record = KEYS[1]
local lock_ttl = ARGV[1]

local stored = redis.call('GET', record)
if not stored then
  redis.call('SET', record, '{"status":0}', 'NX', 'EX', lock_ttl)
  return nil
end

local readable, decoded = pcall(cjson.decode, stored)
if readable and type(decoded) == 'table' and decoded.status == 1 then
  -- Decoded only to look: encoding it again would lose digits and empty arrays.
  return stored
end

-- Text must follow the word: Redis 7 puts ERR before a word that stands alone.
return redis.error_reply('LOCKED the key is held')

-- fenced_begin: take the lock, unless there is a result or another lock.
--
-- KEYS[1]  result_key      the Redis key of the result
-- KEYS[2]  lock_key        the Redis key of the lock; the same one if one key holds both
-- ARGV[1]  lock_value      the lock, which names its owner
-- ARGV[2]  lock_ttl_ms     TTL of the lock in milliseconds; empty for none
--
-- Replies
--   nil     the lock is taken
--   <value>  the stored result, or else the lock of another request
--   error WRONGTYPE  a Redis key holds another type
--

local result_key = KEYS[1]
local lock_key = KEYS[2]
local lock_value = ARGV[1]
local lock_ttl_ms = ARGV[2]

local found = redis.call('GET', result_key) or redis.call('GET', lock_key)
if found then
  return found
end
if lock_ttl_ms == '' then
  redis.call('SET', lock_key, lock_value)
else
  redis.call('SET', lock_key, lock_value, 'PX', lock_ttl_ms)
end
return nil

-- complete: store the result and drop the lock, if the lock is still this worker's.
--
-- KEYS[1]  key         {key}, bare; part of the call, not needed here
-- KEYS[2]  result_key  idem:result:{key}
-- KEYS[3]  lock_key    idem:started:{key}
-- ARGV[1]  worker      the worker's id, the fencing token
-- ARGV[2]  result      the JSON to store
-- ARGV[3]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   1                stored, and the lock deleted
--   0                fenced off: the lock is not, or no longer, this worker's; nothing changed
--   error WRONGTYPE  the lock's Redis key is not a string
--

local key = KEYS[1]
local result_key = KEYS[2]
local lock_key = KEYS[3]
local worker = ARGV[1]
local result = ARGV[2]
local result_ttl = ARGV[3]

if redis.call('GET', lock_key) ~= worker then
  return 0
end

-- The result first: where SET is refused (a bad TTL, no memory), the lock stays.
redis.call('SET', result_key, result, 'EX', result_ttl)
redis.call('DEL', lock_key)
return 1

-- idempotency: hand out the result, or take the lock for this worker.
--
-- KEYS[1]  key         {key}, bare: idem:result:{key} and idem:started:{key} are built from it
-- ARGV[1]  worker      the worker's id (a UUID), which becomes the lock's value
-- ARGV[2]  lock_ttl    TTL of the lock, whole seconds
-- ARGV[3]  result_ttl  TTL of the result, whole seconds; part of the call, not needed here
--
-- Replies
--   {1, <result>}    the stored result, as it is
--   {2}              the lock was free and is now this worker's
--   {3}              the lock is held, be it by this worker
--   error WRONGTYPE  the result's Redis key is not a string
--

local key = KEYS[1]
local worker = ARGV[1]
local lock_ttl = ARGV[2]
local result_ttl = ARGV[3]

-- The services pass the bare key only, so these two are not declared in KEYS:
-- that is why this script cannot run on Redis Cluster.
local result_key = 'idem:result:' .. key
local lock_key = 'idem:started:' .. key

local result = redis.call('GET', result_key)
if result then
  return {1, result}
end

if redis.call('SET', lock_key, worker, 'NX', 'EX', lock_ttl) then
  return {2}
end
return {3}

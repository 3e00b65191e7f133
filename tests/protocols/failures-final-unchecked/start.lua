-- start: replay the result, or take the lock.
--
-- KEYS[1]  result    p:done:{key}
-- KEYS[2]  lock      p:lock:{key}
-- ARGV[1]  owner     the token of the caller
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   {DONE, <text>}  the result
--   {HELD}          another request holds the lock
--   {YOURS}         the caller holds the lock
--

local result = KEYS[1]
local lock = KEYS[2]
local owner = ARGV[1]
local lock_ttl = ARGV[2]

local stored = redis.call('GET', result)
if stored then
  return {'DONE', stored}
end
if redis.call('SET', lock, owner, 'NX', 'EX', lock_ttl) then
  return {'YOURS'}
end
return {'HELD'}

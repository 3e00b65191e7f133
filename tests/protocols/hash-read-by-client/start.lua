-- start: take the lock, or say what is there.
--
-- KEYS[1]  record    p:{key}
-- ARGV[1]  owner     the token of the caller
-- ARGV[2]  lock_ttl  TTL of the lock, whole seconds
--
-- Replies
--   {YOURS}         the caller holds the lock
--   {HELD}          another request holds the lock
--   {DONE, <text>}  the body of the stored response
--

local record = KEYS[1]
local owner = ARGV[1]
local lock_ttl = ARGV[2]

local state = redis.call('HGET', record, 'st')
if not state then
  redis.call('HSET', record, 'st', 'held', 'by', owner)
  redis.call('EXPIRE', record, lock_ttl)
  return {'YOURS'}
end
if state == 'held' then
  return {'HELD'}
end
return {'DONE', redis.call('HGET', record, 'body')}

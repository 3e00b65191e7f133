-- store: keep the response, if the lock is still this request's.
--
-- KEYS[1]  lock_key      idempo:lock:{key}
-- KEYS[2]  response_key  idempo:response:{key}
-- ARGV[1]  token         the random bytes that the lock was taken with
-- ARGV[2]  response      the packed response
-- ARGV[3]  ttl           how long the response stays, whole seconds
--
-- Replies
--   ok               stored; the lock stays
--   stale            the lock is gone, or another request's; nothing changed
--   error WRONGTYPE  the lock's Redis key is not a string
--

local lock_key = KEYS[1]
local response_key = KEYS[2]
local token = ARGV[1]
local response = ARGV[2]
local ttl = ARGV[3]

if redis.call('GET', lock_key) ~= token then
  return 'stale'
end

redis.call('SET', response_key, response, 'EX', ttl)
return 'ok'

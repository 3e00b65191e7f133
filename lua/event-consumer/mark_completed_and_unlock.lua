-- mark_completed_and_unlock: set the done marker and drop the lock in one step.
--
-- KEYS[1]  done_key    idem:done:{key}
-- KEYS[2]  lock_key    idem:lock:{key}
-- ARGV[1]  done        1, or the marshalled result of the operation
-- ARGV[2]  result_ttl  TTL of the done marker, whole seconds
--
-- Replies
--   1  marked; the lock is gone, whoever held it
--

local done_key = KEYS[1]
local lock_key = KEYS[2]
local done = ARGV[1]
local result_ttl = ARGV[2]

-- The marker first: where SET is refused (a bad TTL, no memory), the lock stays.
redis.call('SET', done_key, done, 'EX', result_ttl)
redis.call('DEL', lock_key)
return 1

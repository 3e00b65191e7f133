-- restore_if_absent: bring back one Redis key from a backup, never over a value that is there.
--
-- KEYS[1]  target   the Redis key as it was backed up, e.g. idempotency:{key}
-- ARGV[1]  payload  the bytes DUMP gave
-- ARGV[2]  ttl      milliseconds to live; 0 for no expiry
--
-- Replies
--   RESTORED   the key is back
--   PRESENT    the key is there already; nothing changed
--   error ERR  RESTORE refuses the bytes (damaged, or from a newer server) or the TTL
--

local target = KEYS[1]
local payload = ARGV[1]
local ttl = ARGV[2]

if redis.call('EXISTS', target) == 1 then
  return 'PRESENT'
end

redis.call('RESTORE', target, ttl, payload)
return 'RESTORED'

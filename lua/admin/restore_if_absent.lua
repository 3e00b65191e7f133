-- restore_if_absent: bring back one Redis key from a backup, never over a value nor beside one that bars it.
--
-- KEYS[1]  target      the Redis key as it was backed up, e.g. idem:result:{key}
-- KEYS[2]  bar         where nothing may stand, e.g. the record's lock idem:started:{key}; the target itself where nothing else bars it
-- ARGV[1]  payload     the bytes DUMP gave
-- ARGV[2]  expires_at  when it expires, milliseconds since 1970; 0 for never
--
-- Replies
--   RESTORED   the key is back
--   PRESENT    the key is there already; nothing changed
--   BARRED     the other Redis key is there; nothing changed
--   EXPIRED    its time was over by now; nothing is there
--   error ERR  RESTORE refuses the bytes (damaged, or from a newer server) or the expiry
--

local target = KEYS[1]
local bar = KEYS[2]
local payload = ARGV[1]
local expires_at = ARGV[2]

if redis.call('EXISTS', target) == 1 then
  return 'PRESENT'
end
if redis.call('EXISTS', bar) == 1 then
  return 'BARRED'
end

redis.call('RESTORE', target, expires_at, payload, 'ABSTTL')
-- RESTORE answers OK to an expiry that is over, and leaves nothing.
if redis.call('EXISTS', target) == 0 then
  return 'EXPIRED'
end
return 'RESTORED'

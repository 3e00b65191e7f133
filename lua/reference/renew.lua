-- renew: keep the lock for another TTL, if it is still this owner's.
--
-- KEYS[1]  record    idemkey:{key}
-- ARGV[1]  owner     the token given to begin
-- ARGV[2]  lock_ttl  seconds the lock lives from now on, above 0, such as 30 or 1.5
--
-- Replies
--   RENEWED           the lock is this owner's for another TTL
--   LOST              nothing is there: the lock expired or was removed; stop
--   FENCED            another owner's lock or a result is there; stop
--   error INVALID     an argument is malformed; nothing changed
--   error UNREADABLE  the Redis key holds a string that is no record; nothing changed
--   error WRONGTYPE   the Redis key holds no string; nothing changed
--

local record = KEYS[1]
local owner = ARGV[1]
local lock_ttl = tonumber(ARGV[2])

if not lock_ttl or not (lock_ttl > 0 and lock_ttl <= 1e9) then
  return redis.error_reply('INVALID the lock TTL is a number of seconds above 0, at most 1000000000')
end

local stored = redis.call('GET', record)
if not stored then
  return 'LOST'
end
local holder = string.match(stored, '^{"state":"in%-progress","owner":"([^"]+)","fingerprint":"[^"]*","created_at":%d+}$')
local outcome = string.match(stored, '^{"state":"(%a+)","owner":"[^"]+","fingerprint":"[^"]*","created_at":%d+,"completed_at":%d+,"response":.+}$')
if not holder and outcome ~= 'completed' and outcome ~= 'failed' then
  return redis.error_reply('UNREADABLE the Redis key holds something else than a record')
end
if not holder or holder ~= owner then
  return 'FENCED'
end

redis.call('PEXPIRE', record, string.format('%d', math.ceil(lock_ttl * 1000)))
return 'RENEWED'

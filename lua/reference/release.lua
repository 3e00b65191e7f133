-- release: give the lock up without a result, if it is still this owner's.
--
-- KEYS[1]  record  idemkey:{key}
-- ARGV[1]  owner   the token given to begin
--
-- Replies
--   RELEASED          the lock is gone: the next request executes
--   LOST              nothing is there: the lock expired or was removed before
--   FENCED            another owner's lock or a result is there; nothing changed
--   error UNREADABLE  the Redis key holds a string that is no record; nothing changed
--   error WRONGTYPE   the Redis key holds no string; nothing changed
--

local record = KEYS[1]
local owner = ARGV[1]

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

redis.call('DEL', record)
return 'RELEASED'

-- complete: store what the operation answers, if the lock is still this owner's.
--
-- KEYS[1]  record      idemkey:{key}
-- ARGV[1]  owner       the token given to begin
-- ARGV[2]  outcome     completed or failed
-- ARGV[3]  response    what a replay brings back byte for byte, JSON text; not empty
-- ARGV[4]  result_ttl  seconds the result lives, above 0, such as 86400
--
-- Replies
--   STORED            the result is stored, and the lock with it is over
--   ALREADY           this owner has stored a result before; nothing changed
--   LOST              nothing is there: the lock expired or was removed; nothing changed
--   FENCED            another owner's lock or result is there; nothing changed
--   error INVALID     an argument is malformed; nothing changed
--   error UNREADABLE  the Redis key holds a string that is no record; nothing changed
--   error WRONGTYPE   the Redis key holds no string; nothing changed
--

local record = KEYS[1]
local owner = ARGV[1]
local outcome = ARGV[2]
local response = ARGV[3] or ''
local result_ttl = tonumber(ARGV[4])

if outcome ~= 'completed' and outcome ~= 'failed' then
  return redis.error_reply('INVALID the outcome is completed or failed')
end
if response == '' then
  return redis.error_reply('INVALID the response is empty: send null where there is none')
end
if not result_ttl or not (result_ttl > 0 and result_ttl <= 1e9) then
  return redis.error_reply('INVALID the result TTL is a number of seconds above 0, at most 1000000000')
end

local stored = redis.call('GET', record)
if not stored then
  return 'LOST'
end
local begun, holder = string.match(stored, '^{"state":"in%-progress"(,"owner":"([^"]+)","fingerprint":"[^"]*","created_at":%d+)}$')
local earlier, author = string.match(stored, '^{"state":"(%a+)","owner":"([^"]+)","fingerprint":"[^"]*","created_at":%d+,"completed_at":%d+,"response":.+}$')
if not begun and earlier ~= 'completed' and earlier ~= 'failed' then
  return redis.error_reply('UNREADABLE the Redis key holds something else than a record')
end
if (holder or author) ~= owner then
  return 'FENCED'
end
if not begun then
  return 'ALREADY'
end

-- The response goes in as it came: decoded and encoded again it would lose digits of large numbers.
local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
local result = '{"state":"' .. outcome .. '"' .. begun .. ',"completed_at":' .. now .. ',"response":' .. response .. '}'
redis.call('SET', record, result, 'PX', string.format('%d', math.ceil(result_ttl * 1000)))
return 'STORED'

-- begin: take the lock of an operation, or learn who has it or what the result is.
--
-- KEYS[1]  record       idemkey:{key}
-- ARGV[1]  owner        this request's own token, such as a UUID, never used for another; 1 to 128 bytes
-- ARGV[2]  fingerprint  a hash of the request's payload, such as SHA-256 in hex; 0 to 128 bytes
-- ARGV[3]  lock_ttl     seconds the lock lives without renew, above 0, such as 30 or 1.5
-- ARGV[4]  on_failed    retry or replay: what becomes of a request whose operation failed before
--
-- Replies
--   {ACQUIRED}            the lock is this owner's: execute, then complete or release
--   {IN_PROGRESS, <ms>}   another request executes; its lock has so many milliseconds left
--   {REPLAY, <response>}  the operation is over: this is its response, as it was given to complete
--   {MISMATCH}            the key was used with another payload
--   error INVALID         an argument is malformed; nothing changed
--   error UNREADABLE      the Redis key holds a string that is no record; nothing changed
--   error WRONGTYPE       the Redis key holds no string; nothing changed
--

local record = KEYS[1]
local owner = ARGV[1] or ''
local fingerprint = ARGV[2] or ''
local lock_ttl = tonumber(ARGV[3])
local on_failed = ARGV[4]

-- Both stand in JSON between quotes: what would have to be escaped there is refused.
if not string.find(owner, '^[%w._:/+=-]+$') or not string.find(fingerprint, '^[%w._:/+=-]*$') then
  return redis.error_reply('INVALID owner and fingerprint are made of letters, digits and . _ : / + = -')
end
-- So that all of a record but its response stands in its first 512 bytes, which is what a scan reads.
if #owner > 128 or #fingerprint > 128 then
  return redis.error_reply('INVALID owner and fingerprint are at most 128 bytes long')
end
if not lock_ttl or not (lock_ttl > 0 and lock_ttl <= 1e9) then
  return redis.error_reply('INVALID the lock TTL is a number of seconds above 0, at most 1000000000')
end
if on_failed ~= 'retry' and on_failed ~= 'replay' then
  return redis.error_reply('INVALID what becomes of a failed operation is retry or replay')
end

-- A fraction of a millisecond counts as a whole one, so that no TTL is 0.
local lock_ms = string.format('%d', math.ceil(lock_ttl * 1000))

local stored = redis.call('GET', record)
if stored then
  local locked_for = string.match(stored, '^{"state":"in%-progress","owner":"[^"]+","fingerprint":"([^"]*)","created_at":%d+}$')
  local outcome, done_for, response = string.match(stored, '^{"state":"(%a+)","owner":"[^"]+","fingerprint":"([^"]*)","created_at":%d+,"completed_at":%d+,"response":(.+)}$')
  if not locked_for and outcome ~= 'completed' and outcome ~= 'failed' then
    return redis.error_reply('UNREADABLE the Redis key holds something else than a record')
  end
  if (locked_for or done_for) ~= fingerprint then
    return {'MISMATCH'}
  end
  if locked_for then
    local left = redis.call('PTTL', record)
    if left == -1 then
      -- Someone took its TTL away, so it would stay for ever.
      redis.call('PEXPIRE', record, lock_ms)
      left = tonumber(lock_ms)
    end
    return {'IN_PROGRESS', left}
  end
  if outcome == 'completed' or on_failed == 'replay' then
    return {'REPLAY', response}
  end
end

local time = redis.call('TIME')
local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
local lock = '{"state":"in-progress","owner":"' .. owner .. '","fingerprint":"' .. fingerprint .. '","created_at":' .. now .. '}'
redis.call('SET', record, lock, 'PX', lock_ms)
return {'ACQUIRED'}

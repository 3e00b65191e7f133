-- read_records: read Redis keys in one step; writes nothing, so EVAL_RO runs it too.
--
-- KEYS[1..n]  keys         the Redis keys of one record, or of a few, e.g. idem:started:{key} and idem:result:{key}
-- ARGV[1]     head_length  bytes of each value to return; 0 none; -1 all, and the checksum of a value that is not a string
-- ARGV[2]     detail       0 for the usual, 1 to tell checksums as well, -1 to leave out what takes long: idle time and memory
--
-- Replies
--   {<time>, {<type>, <pttl>, <deadline>, <exact>, <idle>, <memory>, <length>, <checksum>, <head>, <end>}, ...}  an inner array for each key
--   error ERR  head_length is not such a number
--

-- The functions that are not defined here are in shared/deadline.lua and shared/fields.lua, which idemctl
-- puts before this script.

local keys = KEYS
local head_length = tonumber(ARGV[1])
local detail = ARGV[2]

if not head_length or head_length < -1 or head_length % 1 ~= 0 then
  return redis.error_reply('ERR head_length must be a whole number of bytes, or -1 for all')
end

-- A managed service or an ACL may refuse the command; the result is then -1. A nil reply also
-- becomes -1, because nil would end its array.
local function number_or_unknown(reply)
  return type(reply) == 'number' and reply or -1
end

local function head_of(key)
  if head_length == 0 then
    return '' -- GETRANGE 0 -1 would be all of it
  end
  return redis.call('GETRANGE', key, 0, head_length < 0 and -1 or head_length - 1)
end

-- A checksum costs a DUMP of the whole value.
local function checksum_of(key, length)
  if detail ~= '1' or head_length < 0 or length <= head_length then
    return ''
  end
  return string.sub(redis.call('DUMP', key), -8)
end

-- A value that is not a string is compared by its checksum alone. A hash whose fields expire has none: a change would compare
-- and restore the expiry of the key, but that is not when the hash ends. DUMP begins with one of these types for such a hash.
local function checksum_of_elements(key, count)
  local dump = (detail == '1' or head_length < 0) and count <= MAX_DUMPED and redis.pcall('DUMP', key)
  if type(dump) ~= 'string' or (string.byte(dump) >= 22 and string.byte(dump) <= 25) then
    return ''
  end
  return string.sub(dump, -8)
end

-- The reply begins with the time, milliseconds since 1970; -1 if TIME is refused. Then for each key:
-- type      none, string, hash, list, set, zset, stream, or a module's type
-- pttl      milliseconds left; -1 no expiry, -2 absent
-- deadline  when it expires, milliseconds since 1970; -1 no expiry, -2 absent, -3 refused
-- exact     1 if PEXPIRETIME told the deadline, or there is none; 0 if TIME and PTTL did
-- idle      seconds since the value was last used; -1 absent, refused, or under an LFU policy
-- memory    bytes the key takes in the server; -1 absent or refused
-- length    bytes of a string, or elements of anything else; -1 if unknown
-- checksum  the last 8 bytes of DUMP, of a string that is longer than its head, and of anything else; empty unless detail is 1, or
--           head_length is -1 and it is not a string, and empty for too many elements and for a hash whose fields expire
-- head      the first bytes of a string, the fields of a hash that may be read; empty for anything else
-- end       of a hash without expiry: when its last field expires, milliseconds since 1970; else -1
local function read_key(key)
  -- First, because reading the value resets its idle time.
  local idle = detail == '-1' and -1 or number_or_unknown(redis.pcall('OBJECT', 'IDLETIME', key))
  local kind = redis.call('TYPE', key).ok
  local pttl = redis.call('PTTL', key)
  local deadline, is_exact = deadline_of(key)
  local exact = is_exact and 1 or 0
  if kind == 'none' then
    return {kind, pttl, deadline, exact, -1, -1, -1, '', '', -1}
  end
  local memory = detail == '-1' and -1 or number_or_unknown(redis.pcall('MEMORY', 'USAGE', key))
  if kind == 'string' then
    local length = redis.call('STRLEN', key)
    return {kind, pttl, deadline, exact, idle, memory, length, checksum_of(key, length), head_of(key), -1}
  end
  local count = count_of(key, kind)
  local fields = kind == 'hash' and fields_of(key, count, head_length)
  local ends = fields and pttl == -1 and end_of(key, fields) or -1
  return {kind, pttl, deadline, exact, idle, memory, count, checksum_of_elements(key, count), fields or '', ends}
end

local reply = {read_clock() or -1}
for i, key in ipairs(keys) do
  reply[i + 1] = read_key(key)
end
return reply

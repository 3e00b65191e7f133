-- observe: read the Redis keys of one record in one step; writes nothing, so EVAL_RO runs it too.
--
-- KEYS[1..n]  keys         the record's Redis keys, e.g. idem:started:{key} and idem:result:{key}
-- ARGV[1]     head_length  bytes of each value to return; 0 none, -1 all
-- ARGV[2]     checksums    1 to tell the checksum of each value that is longer than what is returned of it, 0 not to
--
-- Replies
--   {<time>, {<type>, <pttl>, <deadline>, <exact>, <idle>, <memory>, <length>, <checksum>, <head>}, ...}  an inner array for each key
--   error ERR  head_length is not such a number
--

local keys = KEYS
local head_length = tonumber(ARGV[1])
local checksums = ARGV[2]

if not head_length or head_length < -1 or head_length % 1 ~= 0 then
  return redis.error_reply('ERR head_length must be a whole number of bytes, or -1 for all')
end

-- What a managed service or an ACL may refuse: -1 then, and for a nil reply,
-- which would end the array it stands in.
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
  if checksums ~= '1' or head_length < 0 or length <= head_length then
    return ''
  end
  return string.sub(redis.call('DUMP', key), -8)
end

-- type      none, string, hash, list, set, zset, stream, or a module's type
-- pttl      milliseconds left; -1 no expiry, -2 absent
-- deadline  when it expires, milliseconds since 1970; -1 no expiry, -2 absent, -3 refused
-- exact     1 when PEXPIRETIME told the deadline, or there is none; 0 when TIME and PTTL did
-- idle      seconds since the value was last used; -1 absent, refused, or under an LFU policy
-- memory    bytes the key takes in the server; -1 absent or refused
-- length    bytes of a string; -1 for anything else
-- checksum  the last 8 bytes of DUMP of a string that is longer than its head; empty unless asked for
-- head      the first bytes of a string; empty for anything else
local function observe(key)
  -- Before anything else: reading the value starts its idle time anew.
  local idle = number_or_unknown(redis.pcall('OBJECT', 'IDLETIME', key))
  local kind = redis.call('TYPE', key).ok
  local pttl = redis.call('PTTL', key)
  local deadline, is_exact = deadline_of(key)
  local exact = is_exact and 1 or 0
  if kind == 'none' then
    return {kind, pttl, deadline, exact, -1, -1, -1, '', ''}
  end
  local memory = number_or_unknown(redis.pcall('MEMORY', 'USAGE', key))
  if kind ~= 'string' then
    return {kind, pttl, deadline, exact, idle, memory, -1, '', ''}
  end
  local length = redis.call('STRLEN', key)
  return {kind, pttl, deadline, exact, idle, memory, length, checksum_of(key, length), head_of(key)}
end

local reply = {read_clock() or -1}
for i, key in ipairs(keys) do
  reply[i + 1] = observe(key)
end
return reply

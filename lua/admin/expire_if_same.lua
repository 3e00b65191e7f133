-- expire_if_same: give one Redis key a TTL, if the whole record is still as it was seen.
--
-- KEYS[1..n]  keys      the one to expire, e.g. idem:started:{key}, then the record's others
-- ARGV[1..n]  expected  for each key: '=' and the exact bytes seen, or '-' for absent
-- ARGV[n+1]   ttl       the new TTL of KEYS[1], milliseconds, at least 1
-- ARGV[n+2]   seen_ttl  TTL of KEYS[1] when seen: milliseconds, expiring (any TTL), persistent (none), or any; may be left out (any)
--
-- Replies
--   EXPIRING   the TTL is set
--   CHANGED    a value, a type or the TTL is not as seen; nothing set
--   ABSENT     KEYS[1] is not there (any more)
--   error ERR  the arguments are malformed
--

local keys = KEYS
local expected = ARGV
local ttl = ARGV[#KEYS + 1]
local seen_ttl = ARGV[#KEYS + 2] or 'any'

if #keys == 0 or #ARGV < #keys + 1 or #ARGV > #keys + 2 then
  return redis.error_reply('ERR expected one argument for each key, the new TTL and the TTL seen')
end
for i = 1, #keys do
  if expected[i] ~= '-' and string.sub(expected[i], 1, 1) ~= '=' then
    return redis.error_reply('ERR an expected value starts with = or is -')
  end
end
-- Zero and below would delete the key.
if not string.find(ttl, '^[1-9]%d*$') then
  return redis.error_reply('ERR the TTL is a whole number of milliseconds above 0')
end
if seen_ttl ~= 'expiring' and seen_ttl ~= 'persistent' and seen_ttl ~= 'any' and not string.find(seen_ttl, '^%d+$') then
  return redis.error_reply('ERR the TTL seen is milliseconds, expiring, persistent or any')
end

-- The type comes first: GET on anything but a string is an error.
local function same_value(key, wanted)
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'string' then
    return kind == 'none' and wanted == '-'
  end
  return wanted ~= '-' and redis.call('GET', key) == string.sub(wanted, 2)
end

-- Many locks hold the same bytes: one that gained an expiry, or whose TTL went up, was taken anew.
local function same_ttl(key)
  local left = redis.call('PTTL', key)
  if seen_ttl == 'any' then
    return true
  elseif seen_ttl == 'persistent' then
    return left < 0
  end
  return left >= 0 and (seen_ttl == 'expiring' or left <= tonumber(seen_ttl))
end

if redis.call('EXISTS', keys[1]) == 0 then
  return 'ABSENT'
end
for i, key in ipairs(keys) do
  if not same_value(key, expected[i]) then
    return 'CHANGED'
  end
end
if not same_ttl(keys[1]) then
  return 'CHANGED'
end

redis.call('PEXPIRE', keys[1], ttl)
return 'EXPIRING'

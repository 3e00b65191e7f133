-- expire_many_if_same: give one Redis key of each of many records a TTL, if the whole record is still as it was seen.
--
-- KEYS[1..n]  keys   for each record the one to expire, e.g. idem:started:{key}, then the record's others
-- ARGV[1..n]  heads  for each key: the bytes of its value that were read, none for an absent one
-- ARGV[n+1]   rules  what else was seen, a rule a key by the grammar below, e.g. =24,30000;
-- ARGV[n+2]   ttl    the new TTL, milliseconds, at least 1
--
-- Replies
--   <letters>  for each record, in order: E expiring, C not as seen and left alone, A gone already
--   error ERR  the arguments are malformed; no TTL set
--

local keys = KEYS
local heads = ARGV
local rules = ARGV[#KEYS + 1]
local ttl = ARGV[#KEYS + 2]

if #keys == 0 or #ARGV ~= #keys + 2 then
  return redis.error_reply('ERR expected one head for each key, the rules and the new TTL')
end
-- Zero and below would delete the keys.
if not string.find(ttl, '^[1-9]%d*$') then
  return redis.error_reply('ERR the TTL is a whole number of milliseconds above 0')
end

-- A rule is <role><length><mark>,<ttl>;
--   role    = the key to expire, which starts a record; + another of its keys; - another one that was absent
--   length  bytes of the whole value, of which the head is the beginning or all; nothing for an absent key
--   mark    d when the last 8 bytes of DUMP, a checksum, stand behind the head and have to be the same too
--   ttl     milliseconds the key to expire had left, -1 for no expiry; nothing for another key
local roles, lengths, marks, seen_ttls, at = {}, {}, {}, {}, 1
for i = 1, #keys do
  local role, length, mark, seen_ttl, rest = string.match(rules, '^([-+=])(%d*)(d?),(%-?%d*);()', at)
  local starts = role == '='
  local fits = role and (length == '') == (role == '-') and (tonumber(seen_ttl) ~= nil) == starts
  if not fits or (i == 1 and not starts) then
    return redis.error_reply('ERR a rule is malformed')
  end
  roles[i], lengths[i], marks[i], seen_ttls[i], at = role, tonumber(length) or 0, mark == 'd', tonumber(seen_ttl), rest
  -- Of a value that is not empty some of it must have been read: its length alone says too little.
  local head_length = #heads[i] - (marks[i] and 8 or 0)
  if head_length > lengths[i] or head_length < math.min(lengths[i], 1) then
    return redis.error_reply('ERR a head does not fit its length')
  end
end
if at ~= #rules + 1 then
  return redis.error_reply('ERR expected one rule for each key')
end

-- What is no string answers GETRANGE with an error, which equals no head.
local function same_value(i)
  local key, head = keys[i], heads[i]
  if marks[i] then
    head = string.sub(head, 1, -9)
    if string.sub(redis.call('DUMP', key), -8) ~= string.sub(heads[i], -8) then
      return false
    end
  end
  if #head == lengths[i] then
    -- One byte more shows that nothing follows.
    return redis.pcall('GETRANGE', key, 0, #head) == head
  end
  return redis.pcall('GETRANGE', key, 0, #head - 1) == head and redis.call('STRLEN', key) == lengths[i]
end

-- Many locks hold the same bytes: one that gained an expiry, or whose TTL went up, was taken anew.
local function letter_for(i)
  local left = redis.call('PTTL', keys[i])
  if left == -2 then
    return 'A'
  end
  local same_ttl = left <= seen_ttls[i] and (left == -1) == (seen_ttls[i] == -1)
  return same_ttl and same_value(i) and 'E' or 'C'
end

local function same_beside(i)
  local absent = redis.call('EXISTS', keys[i]) == 0
  return absent == (roles[i] == '-') and (absent or same_value(i))
end

-- All are compared before any of them changes: two changes to one record's keys both go by what was seen.
local letters, targets = {}, {}
for i, key in ipairs(keys) do
  local n = #letters
  if roles[i] == '=' then
    letters[n + 1], targets[n + 1] = letter_for(i), key
  elseif letters[n] == 'E' and not same_beside(i) then
    letters[n] = 'C'
  end
end
local same = {}
for n, letter in ipairs(letters) do
  if letter == 'E' then
    same[#same + 1] = targets[n]
  end
end

for _, key in ipairs(same) do
  redis.call('PEXPIRE', key, ttl)
end
return table.concat(letters)

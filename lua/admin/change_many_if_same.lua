-- change_many_if_same: remove Redis keys of many records, or give them a TTL, each record only if all of it is still as it was seen.
--
-- KEYS[1..n]     keys           for each record one that changes, e.g. idem:started:{key}, then the record's others
-- ARGV[1..n]     heads          for each key: the bytes of its value that were read, none for an absent one
-- ARGV[n+1..2n]  preconditions  for each key what else was seen, by the grammar below, e.g. 1767225600000
-- ARGV[2n+1]     change         UNLINK, or the new TTL, milliseconds, at least 1; + before it never shortens, - before it never lengthens
--
-- Replies
--   <letters>  for each record: D done, C not as seen, A gone already, K left alone by + or -; then @ and the moment of a new TTL
--   error ERR  the arguments are malformed; nothing changed
--   error NOPERM  the user may send neither PEXPIRETIME nor TIME; nothing changed
--

-- clock, read_clock, deadline_of and FARTHEST are in shared/deadline.lua, which idemctl puts in front of this script.
local keys = KEYS
local heads = ARGV
local preconditions = ARGV
local change = ARGV[2 * #KEYS + 1]
local n = #keys

if n == 0 or #heads ~= 2 * n + 1 then
  return redis.error_reply('ERR expected a head and a precondition for each key, and the change')
end
-- A TTL of zero or less would delete the keys.
local bound, ttl = string.match(change, '^([-+]?)([1-9]%d*)$')
if change ~= 'UNLINK' and not ttl then
  return redis.error_reply('ERR the change is UNLINK or a whole number of milliseconds above 0')
end
ttl = tonumber(ttl)
-- The moment is computed here, because only this node's clock decides when its keys expire, and
-- clocks in a cluster differ.
local moment = ttl and read_clock() and clock + ttl

-- Local names, because a purge of a million keys spends its time in the loops below.
local call, pcall, match, tonumber = redis.call, redis.pcall, string.match, tonumber

-- A precondition is <deadline>, or <role><length><mark>,<~?deadline>
--   role      = a key to change, which starts a record; * another of its keys, which changes too; + one that does not change;
--             - one that was absent
--   length    bytes of the whole value, of which the head is the beginning or all; nothing for an absent key
--   mark      d when the last 8 bytes of DUMP, a checksum, follow the head and have to be the same too; D when they are all of
--             the head and the length is 0: the value is not a string, and DUMP contains its type and its elements
--   deadline  the moment at which the key expires, milliseconds since 1970, with ~ in front if it was read with TIME and PTTL;
--             -1 for no expiry, nothing for an absent key
-- Most preconditions are only a deadline: the key changes, and its head is all of its value.
local roles, lengths, marks, deadlines, blurred = {}, {}, {}, {}, {}
for i = 1, n do
  local precondition, head_length = preconditions[n + i], #heads[i]
  local seen = tonumber(precondition)
  if seen then
    roles[i], lengths[i] = '=', head_length
  else
    local length, deadline
    roles[i], length, marks[i], blurred[i], deadline = match(precondition, '^([-+=*])(%d*)([dD]?),(~?)(%-?%d*)$')
    seen = tonumber(deadline)
    local is_absent = roles[i] == '-'
    if not roles[i] or (length == '') ~= is_absent or (seen == nil) ~= is_absent then
      return redis.error_reply('ERR a precondition is malformed')
    end
    lengths[i] = tonumber(length) or 0
    head_length = head_length - (marks[i] ~= '' and 8 or 0)
  end
  deadlines[i] = seen and math.min(seen, FARTHEST)
  if seen and (seen < -1 or seen % 1 ~= 0) or (i == 1 and roles[i] ~= '=') then
    return redis.error_reply('ERR a precondition is malformed')
  end
  -- A value that is not empty must have been read at least in part, because its length alone is
  -- weak evidence.
  if head_length > lengths[i] or (head_length < 1 and lengths[i] > 0) or (marks[i] == 'D' and head_length ~= 0) then
    return redis.error_reply('ERR a head does not fit its length')
  end
end

-- Numbers as text. Most of them repeat, and Redis takes longer to format one than to execute the
-- command for it.
local texts = {}
local function text(number)
  local written = texts[number] or string.format('%d', number)
  texts[number] = written
  return written
end

-- For a value that is not a string, GETRANGE returns an error, which equals no head.
local function same_value(i)
  local key, head, length = keys[i], heads[i], lengths[i]
  if marks[i] == 'D' then
    return string.sub(call('DUMP', key), -8) == head
  end
  if marks[i] == 'd' then
    if string.sub(call('DUMP', key), -8) ~= string.sub(head, -8) then
      return false
    end
    head = string.sub(head, 1, -9)
  end
  if #head == length then
    -- One byte more shows that nothing follows.
    return pcall('GETRANGE', key, '0', text(length)) == head
  end
  return pcall('GETRANGE', key, '0', text(#head - 1)) == head and call('STRLEN', key) == length
end

-- The largest difference in milliseconds between two measurements that are not both exact.
local SLACK = 2

-- Many locks hold the same bytes, but a lock that was renewed, or released and re-acquired, expires
-- at another moment.
local function same_deadline(i, deadline, is_exact)
  local seen = deadlines[i]
  if deadline < 0 or seen < 0 then
    return deadline == seen
  end
  return math.abs(deadline - seen) <= ((is_exact and blurred[i] ~= '~') and 0 or SLACK)
end

-- True if a key that expires at `deadline` already has as much time as + requests, or no more than -
-- allows.
local function is_kept(key, deadline)
  if bound ~= '+' and bound ~= '-' then
    return false
  end
  if deadline == -1 then
    return bound == '+'
  end
  local left = clock and deadline - clock or call('PTTL', key)
  return bound == '+' and left >= ttl or bound == '-' and left <= ttl
end

local may_not_ask = false
local function letter_for(i)
  local deadline, is_exact = deadline_of(keys[i])
  may_not_ask = may_not_ask or deadline == -3
  if deadline == -2 then
    return 'A'
  end
  if not same_deadline(i, deadline, is_exact) or not same_value(i) then
    return 'C'
  end
  return is_kept(keys[i], deadline) and 'K' or 'D'
end

-- The letter of a record after one of its other keys has been compared.
local function letter_beside(i, letter)
  local deadline, is_exact = deadline_of(keys[i])
  may_not_ask = may_not_ask or deadline == -3
  if letter == 'A' then
    -- A record is gone only if all of its keys that change are.
    return (roles[i] == '*' and deadline ~= -2) and 'C' or 'A'
  end
  if deadline == -2 or roles[i] == '-' then
    return (deadline == -2 and roles[i] == '-') and letter or 'C'
  end
  return (same_deadline(i, deadline, is_exact) and same_value(i)) and letter or 'C'
end

-- Compare all records before changing any, so that two changes to one record's keys are both based
-- on the state that was read.
local letters, record = {}, 0
for i = 1, n do
  if roles[i] == '=' then
    record = record + 1
    letters[record] = letter_for(i)
  elseif letters[record] == 'D' or letters[record] == 'A' then
    letters[record] = letter_beside(i, letters[record])
  end
end
if may_not_ask then
  return redis.error_reply('NOPERM whether a key is as it was seen takes +pexpiretime, or +pttl and +time')
end
local same
same, record = {}, 0
for i = 1, n do
  if roles[i] == '=' then
    record = record + 1
  end
  if letters[record] == 'D' and (roles[i] == '=' or roles[i] == '*') then
    same[#same + 1] = keys[i]
  end
end

if not ttl then
  if #same > 0 then
    call('UNLINK', (table.unpack or unpack)(same))
  end
  return table.concat(letters)
end

-- The comparison took time, so a relative TTL would end after the moment. But the user may lack the
-- right to PEXPIREAT.
local at, after = moment and text(moment), text(ttl)
for _, key in ipairs(same) do
  if not at or type(pcall('PEXPIREAT', key, at)) == 'table' then
    call('PEXPIRE', key, after)
  end
end
return table.concat(letters) .. (at and '@' .. at or '')

-- restore_many_if_absent: bring back records from a backup, each as a whole, never over a value nor beside one that bars it.
--
-- KEYS[1..n]     keys       for each record its Redis keys as they were backed up, e.g. idem:started:{key}, then those that bar it
-- ARGV[1..n]     payloads   for each key the bytes DUMP gave; empty for one that bars
-- ARGV[n+1..2n]  deadlines  for each key when it expires, milliseconds since 1970, by the grammar below; 0 for never
--
-- Replies
--   {<letters>, <time>, <refusals>}  a letter for each key that comes back, by the list below; the refusal of RESTORE for each X
--   error ERR                        the arguments are malformed; nothing changed
--

local keys = KEYS
local payloads = ARGV
local deadlines = ARGV
local n = #keys

if n == 0 or #payloads ~= 2 * n then
  return redis.error_reply('ERR expected a payload and a deadline for each key')
end

-- A deadline is <moment>, *<moment>, or -
--   <moment>   the first key of a record
--   *<moment>  another of its keys that comes back with it
--   -          a key that bars the record: it does not come back, and must be absent
local roles, moments = {}, {}
for i = 1, n do
  roles[i], moments[i] = string.match(deadlines[n + i], '^([*-]?)(%d*)$')
  if not roles[i] or (roles[i] == '-') ~= (moments[i] == '') or (i == 1 and roles[i] ~= '') then
    return redis.error_reply('ERR a deadline is malformed')
  end
end

-- The letters: R back, P a value is there, B another of the record's keys is there, E its time is over, X the record was refused.
local letters, refusals = {}, {}

-- Only this node's clock decides whether a key has expired, because clocks in a cluster differ. The
-- reply contains its time, or -1 if the user may not send TIME.
local now = read_clock()

local call, pcall = redis.call, redis.pcall

-- Restores the record whose keys are `first` to `last`: completely, or not at all. Nothing is
-- restored if any of its keys exists.
local function bring_back(first, last)
  local is_blocked = false
  for i = first, last do
    local is_there, at = call('EXISTS', keys[i]) == 1, tonumber(moments[i])
    is_blocked = is_blocked or is_there
    local is_over = now and at and at > 0 and at <= now
    letters[i] = roles[i] == '-' and '' or is_over and 'E' or is_there and 'P' or 'B'
  end
  for i = first, is_blocked and 0 or last do
    if letters[i] == 'B' then
      -- An error must not end the script, because other records may be back already.
      local reply = pcall('RESTORE', keys[i], moments[i], payloads[i], 'ABSTTL')
      if reply.err then
        -- Redis 6.2 writes the line of the script in front of the error.
        reply.err = string.match(reply.err, '^@user_script: %d+: %-(.*)$') or reply.err
        for j = first, last do
          if letters[j] == 'B' or letters[j] == 'R' and type(pcall('UNLINK', keys[j])) == 'number' then
            letters[j] = 'X'
            refusals[#refusals + 1] = reply
          end
        end
        return
      end
      -- RESTORE answers OK for an expiry in the past, but stores nothing.
      letters[i] = call('EXISTS', keys[i]) == 1 and 'R' or 'E'
    end
  end
end

local first = 1
for i = 2, n + 1 do
  if i > n or roles[i] == '' then
    bring_back(first, i - 1)
    first = i
  end
end
return {table.concat(letters), now or -1, (table.unpack or unpack)(refusals)}

-- restore_if_absent: bring back the Redis keys of one record from a backup together, never over a value nor beside one that bars them.
--
-- KEYS[1..n]     keys       the Redis keys as they were backed up, e.g. idem:started:{key} and idem:result:{key}, and those that bar them
-- ARGV[1..n]     payloads   for each key the bytes DUMP gave; empty for one that does not come back, and must not be there
-- ARGV[n+1..2n]  deadlines  for each key when it expires, milliseconds since 1970; 0 for never, and for one that does not come back
--
-- Replies
--   {<letters>, <time>}  for each key with a payload: R back, P a value is there, B another of the keys is there, E its time is over
--   <refusal>            the error of RESTORE for bytes that it refuses (damaged, or from a newer server); nothing changed
--   error ERR            the arguments are malformed; nothing changed
--

local keys = KEYS
local payloads = ARGV
local deadlines = ARGV
local n = #keys

if n == 0 or #payloads ~= 2 * n then
  return redis.error_reply('ERR expected a payload and a deadline for each key')
end

-- Only this node's clock decides whether a key has expired, because clocks in a cluster differ. The
-- reply contains its time, or -1 if the user may not send TIME. Nothing is restored if any of the
-- keys exists.
local now = read_clock()
local letters, is_blocked = {}, false
for i, key in ipairs(keys) do
  if not string.find(deadlines[n + i], '^%d+$') then
    return redis.error_reply('ERR a deadline is malformed')
  end
  local is_there, at = redis.call('EXISTS', key) == 1, tonumber(deadlines[n + i])
  is_blocked = is_blocked or is_there
  local is_over = now and at > 0 and at <= now
  letters[i] = payloads[i] == '' and '' or is_over and 'E' or is_there and 'P' or 'B'
end

if not is_blocked then
  local back = {}
  for i, key in ipairs(keys) do
    if letters[i] == 'B' then
      -- If RESTORE refuses the first key, the script ends before it changes anything, with the
      -- error of Redis.
      local restore = #back == 0 and redis.call or redis.pcall
      local reply = restore('RESTORE', key, deadlines[n + i], payloads[i], 'ABSTTL')
      if reply.err then
        -- The record is restored completely or not at all.
        for _, other in ipairs(back) do
          redis.call('UNLINK', other)
        end
        return reply
      end
      back[#back + 1] = key
      -- RESTORE answers OK for an expiry in the past, but stores nothing.
      letters[i] = redis.call('EXISTS', key) == 1 and 'R' or 'E'
    end
  end
end
return {table.concat(letters), now or -1}

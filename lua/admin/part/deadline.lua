-- deadline: the moment at which a Redis key expires. The one definition, in front of each script that compares or tells it.

-- PEXPIRETIME, from Redis 7.0 on, tells the moment exactly. Without it the moment is TIME + PTTL, asked one right after the
-- other: two such readings of one key lie at most 1 ms apart.
local has_pexpiretime = true

-- Milliseconds since 1970 by the server's clock, and whether that is exact; -1 for no expiry, -2 for an absent key, -3
-- where the user may ask neither command.
local function deadline_of(key)
  if has_pexpiretime then
    local at = redis.pcall('PEXPIRETIME', key)
    if type(at) == 'number' then
      return at, true
    end
    has_pexpiretime = false
  end
  local left = redis.call('PTTL', key)
  if left < 0 then
    return left, true
  end
  local time = redis.pcall('TIME')
  if time.err then
    return -3, false
  end
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + left, false
end


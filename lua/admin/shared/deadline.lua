-- deadline: the moment at which a Redis key expires. Each script that compares or tells it starts with this definition.

-- PEXPIRETIME (Redis 7.0 or later) returns the exact moment. Earlier versions need TIME + PTTL. The
-- clock is read before and after PTTL, because the moment would be too late if the system paused
-- the server between PTTL and TIME.
local has_pexpiretime = true

-- The script gives up after this many measurements that each took more than 1 ms around PTTL. It
-- then uses the last moment. If that is wrong, the comparison fails and the key is left alone.
local MAX_MEASUREMENTS = 50

-- Lua's numbers are exact up to this value, in the year 287396. A later moment counts as this one.
local FARTHEST = 9007199254740992

-- The time that the clock showed last, in milliseconds since 1970.
local clock

-- Reads the clock; nil if the user may not send TIME.
local function read_clock()
  local time = redis.pcall('TIME')
  clock = not time.err and tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) or nil
  return clock
end

-- The moment in milliseconds since 1970 by the server's clock, and whether it is exact. -1 for no
-- expiry, -2 for an absent key, -3 if the user may send neither PEXPIRETIME nor TIME.
local function deadline_of(key)
  if has_pexpiretime then
    local at = redis.pcall('PEXPIRETIME', key)
    if type(at) == 'number' then
      return math.min(at, FARTHEST), true
    end
    has_pexpiretime = false
  end
  local moment
  for _ = 1, MAX_MEASUREMENTS do
    local before, left = clock, redis.call('PTTL', key)
    if left < 0 then
      return left, true
    end
    local after = read_clock()
    if not after then
      return -3, false
    end
    moment = math.min(after + left, FARTHEST)
    -- Two such moments of one key differ by at most 1 ms.
    if before and after - before <= 1 then
      break
    end
  end
  return moment, false
end


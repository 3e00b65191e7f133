-- fields: the elements of a value that is not a string, read within bounds. No command reads only a part of a field's value.

-- The most fields of a hash that are read.
local MAX_FIELDS = 256

-- The largest value in bytes of a field that is read in order to cut it, unless whole values are
-- wanted.
local MAX_CUT = 1048576

-- The largest memory in bytes of a hash that is read with one command. For a hash of four fields,
-- that saves seven calls.
local MAX_AT_ONCE = 65536

-- The most elements of a value for which DUMP is called.
local MAX_DUMPED = 10000

local COUNTS = {hash = 'HLEN', set = 'SCARD', zset = 'ZCARD', list = 'LLEN', stream = 'XLEN'}

-- How many elements a value has; -1 for an unknown type.
local function count_of(key, kind)
  local count = COUNTS[kind] and redis.pcall(COUNTS[kind], key)
  return type(count) == 'number' and count or -1
end

-- The names of a hash's fields; for a small hash, also their values. MEMORY USAGE samples all
-- fields, because a single value may be large.
local function names_of(key)
  local memory = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', 0)
  local all = type(memory) == 'number' and memory <= MAX_AT_ONCE and redis.pcall('HGETALL', key)
  if not all or all.err then
    return redis.pcall('HKEYS', key), {}
  end
  local names, values = {}, {}
  for i = 1, #all, 2 do
    local at = (i + 1) / 2
    names[at], values[at] = all[i], all[i + 1]
  end
  return names, values
end

-- The fields of a hash: for each its name, the length of its value in bytes, and the beginning of
-- the value. Short values use the budget in bytes first, because states and owners are short; below
-- 0, everything is read. Empty for a hash with more than MAX_FIELDS fields; nil if the user may
-- not read it.
local function fields_of(key, count, budget)
  local fields, lengths, order = {}, {}, {}
  if count > MAX_FIELDS then
    return fields
  end
  local names, values = names_of(key)
  if count < 0 or names.err then
    return nil
  end
  for i, name in ipairs(names) do
    lengths[i], order[i] = values[i] and #values[i] or redis.call('HSTRLEN', key, name), i
  end
  table.sort(order, function(a, b) return lengths[a] < lengths[b] end)
  local whole, left = budget < 0, math.max(budget, 0)
  for _, i in ipairs(order) do
    local value = ''
    if whole or (left > 0 and lengths[i] <= math.max(MAX_CUT, left)) then
      value = values[i] or redis.call('HGET', key, names[i]) or ''
      value = whole and value or string.sub(value, 1, left)
      left = left - #value
    end
    local at = #fields
    fields[at + 1], fields[at + 2], fields[at + 3] = names[i], lengths[i], value
  end
  return fields
end

-- When the last field of a hash expires, and the hash with it, in milliseconds since 1970; -1 if a
-- field never expires, or if the server does not support expiry of fields (before Redis 7.4).
local function end_of(key, fields)
  local names = {}
  for i = 1, #fields, 3 do
    names[#names + 1] = fields[i]
  end
  local ends = #names > 0 and redis.pcall('HPEXPIRETIME', key, 'FIELDS', #names, (table.unpack or unpack)(names))
  local last = -1
  for _, at in ipairs(type(ends) == 'table' and not ends.err and ends or {}) do
    if at < 0 then
      return -1
    end
    last = math.max(last, at)
  end
  return last
end

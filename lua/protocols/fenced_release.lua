-- fenced_release: give the lock up, if it still has this owner.
--
-- KEYS[1]  lock_key    the Redis key of the lock
-- ARGV[1]  owner       the owner that the lock must name
-- ARGV[2]  owner_path  where the lock names it: a JSON array of member names; [] for the whole value
--
-- Replies
--   1  the lock is gone
--   0  there is no such lock, or it has another owner
--   error WRONGTYPE  a Redis key holds another type
--   error ERR  owner_path is not JSON
--

local lock_key = KEYS[1]
local owner = ARGV[1]
local owner_path = ARGV[2]

local held = redis.call('GET', lock_key)
for _, name in ipairs(cjson.decode(owner_path)) do
  if type(held) == 'string' then
    local is_json, decoded = pcall(cjson.decode, held)
    held = is_json and decoded
  end
  held = type(held) == 'table' and held[name]
end
if held ~= owner then
  return 0
end
redis.call('DEL', lock_key)
return 1

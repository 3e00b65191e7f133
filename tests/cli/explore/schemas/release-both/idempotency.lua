local key = KEYS[1]
local worker = ARGV[1]
local lock_ttl = ARGV[2]
local result_ttl = ARGV[3]

local result_key = 'release-both:result:' .. key
local lock_key = 'release-both:started:' .. key

if redis.call('EXISTS', lock_key) == 1 then
  return {3}
end
local result = redis.call('GET', result_key)
if result then
  return {1, result}
end
redis.call('SET', lock_key, worker, 'NX', 'EX', lock_ttl)
return {2}

local key = KEYS[1]
local result_key = KEYS[2]
local lock_key = KEYS[3]
local worker = ARGV[1]
local result = ARGV[2]
local result_ttl = ARGV[3]

redis.call('SET', result_key, result, 'EX', result_ttl)
if redis.call('GET', lock_key) == worker then redis.call('DEL', lock_key) end
return 1

-- complete_processing: store the response over whatever the key holds.
--
-- KEYS[1]  record      idem:{key}
-- ARGV[1]  completed   the JSON to store, status COMPLETED
-- ARGV[2]  result_ttl  TTL of the result, whole seconds
--
-- Replies
--   OK            stored
--   LOCK_EXPIRED  the key is gone; nothing changed
--

local record = KEYS[1]
local completed = ARGV[1]
local result_ttl = ARGV[2]

-- Only that a key exists: the service does not look at its state, so a late
-- worker overwrites another worker's lock or result.
if redis.call('EXISTS', record) == 0 then
  return 'LOCK_EXPIRED'
end

redis.call('SET', record, completed, 'EX', result_ttl)
return 'OK'

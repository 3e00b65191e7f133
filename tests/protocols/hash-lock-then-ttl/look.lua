-- look: say what is there.
--
-- KEYS[1]  record  p:{key}
--
-- Replies
--   {NOTHING}       no request holds the key
--   {HELD}          another request holds the lock
--   {DONE, <text>}  the body of the stored response
--

local record = KEYS[1]

local state = redis.call('HGET', record, 'st')
if not state then
  return {'NOTHING'}
end
if state == 'held' then
  return {'HELD'}
end
return {'DONE', redis.call('HGET', record, 'body')}

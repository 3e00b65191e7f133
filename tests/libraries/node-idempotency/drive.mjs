// Drives @node-idempotency/core with its Redis adapter, and records what the library writes and answers.
//
//   drive.mjs record FILE   every state, into FILE
//   drive.mjs begin KEY     takes the key and leaves the record in progress
//   drive.mjs answer KEY    what a request with the key gets now
//
// The library has two calls: `onRequest` before the handler, `onResponse` after it. A handler runs where `onRequest` gives nothing.

import core from '@node-idempotency/core';
import adapter from '@node-idempotency/storage-adapter-redis';

import { Recorder, main, refusal, socketPath, versionOf } from './recorder.mjs';

const HEADER = {
  library: '@node-idempotency/core',
  version: versionOf('@node-idempotency/core'),
  registry: 'npm',
  source: 'https://github.com/mahendraHegde/node-idempotency',
  schema: 'node-idempotency',
};
const DAY = 86_400_000;
const storage = new adapter.RedisStorageAdapter({ socket: { path: socketPath() } });
await storage.connect();

const service = (options) => new core.Idempotency(storage, options);
const request = (key, more = {}) => ({
  headers: { 'Idempotency-Key': key },
  path: '/payments',
  method: 'POST',
  body: { amount: 1 },
  ...more,
});

/** What a request gets, in the words of the fixtures. */
async function ask(options, asked) {
  const idempotency = service(options);
  try {
    const stored = await idempotency.onRequest(asked);
    if (stored !== undefined) return { answer: 'replay', text: JSON.stringify(stored) };
    const response = { statusCode: 201, body: { id: 2 } };
    await idempotency.onResponse(asked, response);
    return { answer: 'executed', text: JSON.stringify(response) };
  } catch (error) {
    const known = { REQUEST_IN_PROGRESS: 'conflict', IDEMPOTENCY_FINGERPRINT_MISSMATCH: 'mismatch' };
    return refusal(known[error.code] ?? 'error', error);
  }
}

const questions = (options, asked, other) => ({
  same: () => ask(options, asked),
  ...(other ? { other: () => ask(options, other) } : {}),
});

async function recordLocks(recorder) {
  const short = { inProgressStrategy: { wait: true, pollingIntervalMs: 20, maxWaitMs: 100 } };
  const shapes = [
    ['in-progress', 'a request at work', {}, {}],
    ['in-progress-no-body', 'a request at work without a body, so without a fingerprint', {}, { body: undefined, method: 'DELETE' }],
    ['in-progress-prefix', "a cacheKeyPrefix of the deployment's own", { cacheKeyPrefix: 'shop' }, {}],
    ['in-progress-short', 'cacheTTLMS = 60000', { cacheTTLMS: 60_000 }, {}],
    ['in-progress-path', 'a path with a colon and a parameter', {}, { path: '/payments/tenant:7/charge' }],
    ['in-progress-wait', 'a deployment whose requests wait for the result, here for 100 ms', short, {}],
  ];
  for (const [name, about, options, more] of shapes) {
    const asked = request(`pay-${name}`, more);
    await service(options).onRequest(asked);
    const snapshot = await recorder.snapshot();
    const other = asked.body && { ...asked, body: { amount: 2 } };
    const prefix = options.cacheKeyPrefix ? { prefix: `${options.cacheKeyPrefix}:` } : {};
    const ttl = options.cacheTTLMS ?? DAY;
    await recorder.sample({ name, about, key: `pay-${name}`, snapshot, ask: questions(options, asked, other), ttl, ...prefix });
  }
}

async function recordResults(recorder) {
  const bodies = {
    object: { statusCode: 201, body: { id: 1, message: 'über ✓' }, additional: { headers: { 'content-type': 'application/json' } } },
    text: { statusCode: 200, body: 'done' },
    list: { statusCode: 200, body: [1, 2.5, 'x'] },
    'no-body': { statusCode: 204, additional: { headers: {} } },
    error: { statusCode: 422, error: { message: 'card declined' } },
    nothing: undefined,
  };
  for (const [kind, response] of Object.entries(bodies)) {
    const asked = request(`pay-done-${kind}`);
    const idempotency = service();
    await idempotency.onRequest(asked);
    await idempotency.onResponse(asked, response);
    const snapshot = await recorder.snapshot();
    const ask = questions({}, asked, { ...asked, body: { amount: 2 } });
    await recorder.sample({ name: `completed-${kind}`, about: 'a stored response', key: `pay-done-${kind}`, snapshot, ask, ttl: DAY });
  }
  const asked = request('pay-done-no-request-body', { body: undefined });
  await service().onRequest(asked);
  await service().onResponse(asked, { statusCode: 200, body: 'done' });
  const snapshot = await recorder.snapshot();
  const about = 'a stored response of a request without a body';
  const ask = questions({}, asked, { ...asked, body: { amount: 2 } });
  await recorder.sample({ name: 'completed-no-request-body', about, key: 'pay-done-no-request-body', snapshot, ask, ttl: DAY });
}

async function recordOdd(recorder) {
  const key = 'pay-odd';
  const redisKey = `node-idempotency:POST:/payments:${key}`;
  const byHand = [
    ['not-json', 'text that another program wrote', ['SET', redisKey, 'not JSON', 'EX', 3600]],
    ['empty', 'an empty text that another program wrote', ['SET', redisKey, '', 'EX', 3600]],
    ['wrong-type', 'a hash that another program wrote', ['HSET', redisKey, 'status', 'COMPLETE']],
    ['unknown-status', 'a status that the library does not know, written by hand', ['SET', redisKey, '{"status":"DONE"}', 'EX', 3600]],
    ['failed', 'nothing is there: the service removed the key, or the key expired', ['DEL', redisKey]],
  ];
  for (const [name, about, command] of byHand) {
    await recorder.wire.call(...command);
    await recorder.sample({ name, about, key, snapshot: await recorder.snapshot(), ask: questions({}, request(key)) });
  }
}

async function record(path) {
  const recorder = await Recorder.start(HEADER, ['@node-idempotency/storage-adapter-redis']);
  await recordLocks(recorder);
  await recordResults(recorder);
  await recordOdd(recorder);
  recorder.write(path);
}

async function begin(key) {
  await service().onRequest(request(key));
  return { key };
}

await main({ record, begin, answer: (key) => ask({}, request(key)) });

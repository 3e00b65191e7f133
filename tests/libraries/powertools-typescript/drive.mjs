// Drives @aws-lambda-powertools/idempotency with its cache persistence layer, and records what the library writes and answers.
//
//   drive.mjs record FILE   every state, into FILE
//   drive.mjs begin KEY     takes the key and leaves the record in progress, as a killed function does
//   drive.mjs answer KEY    what a request with the key gets now

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

import { Recorder, main, refusal, socketPath, versionOf } from './recorder.mjs';

process.env.AWS_LAMBDA_FUNCTION_NAME = 'payments-ts';
process.env.POWERTOOLS_DEV = 'false';
console.warn = () => {};

const { IdempotencyConfig, makeIdempotent } = await import('@aws-lambda-powertools/idempotency');
const { CachePersistenceLayer } = await import('@aws-lambda-powertools/idempotency/cache');

const HEADER = {
  library: '@aws-lambda-powertools/idempotency',
  version: versionOf('@aws-lambda-powertools/idempotency'),
  registry: 'npm',
  source: 'https://github.com/aws-powertools/powertools-lambda-typescript',
  schema: 'powertools-typescript',
};
const MOMENTS = { expiration: 's', in_progress_expiration: 'ms' };
const HOUR = 3_600_000;

const client = await createClient({ socket: { path: socketPath() } }).connect();
let ran = false;

/** A handler under the library; `left` is the remaining time in milliseconds, null where no context is registered. */
function service(work, { left = 600_000, validate, ttl = 3600, prefix, ...attributes } = {}) {
  const config = new IdempotencyConfig({
    eventKeyJmesPath: 'id',
    payloadValidationJmesPath: validate,
    expiresAfterSeconds: ttl,
    ...(left === null ? {} : { lambdaContext: { getRemainingTimeInMillis: () => left } }),
  });
  const persistenceStore = new CachePersistenceLayer({ client, ...attributes });
  // The name stands in the Redis key.
  async function pay(event) {
    ran = true;
    return work(event);
  }
  return makeIdempotent(pay, { persistenceStore, config, keyPrefix: prefix });
}

/** What a request gets, in the words of the fixtures. */
async function ask(pay, event) {
  ran = false;
  try {
    const value = await pay(event);
    return { answer: ran ? 'executed' : 'replay', text: JSON.stringify(value) ?? 'undefined' };
  } catch (error) {
    const known = { IdempotencyAlreadyInProgressError: 'conflict', IdempotencyValidationError: 'mismatch' };
    return refusal(known[error.name] ?? 'error', error);
  }
}

/** The snapshot that is taken while the handler runs. */
async function inProgress(recorder, event, options) {
  let seen;
  await service(async () => {
    seen = await recorder.snapshot();
  }, options)(event);
  await recorder.empty();
  return seen;
}

async function completed(recorder, event, value, options) {
  await service(async () => value, options)(event);
  const seen = await recorder.snapshot();
  await recorder.empty();
  return seen;
}

/** The same request again, and, where payloads are compared, one with another payload. */
function questions(event, options, other) {
  const pay = service(async () => ({ statusCode: 201 }), options);
  return { same: () => ask(pay, event), ...(other ? { other: () => ask(pay, other) } : {}) };
}

async function recordLocks(recorder) {
  const shapes = [
    ['in-progress', 'a function at work, with its remaining time', {}],
    ['in-progress-no-context', 'a function at work that registered no Lambda context', { left: null }],
    ['in-progress-validation', "a function at work, the payload's hash kept", { validate: 'amount' }],
    ['in-progress-prefix', "a keyPrefix of the deployment's own, in place of the function's name", { prefix: 'shop/eu' }],
    ['in-progress-short', 'expiresAfterSeconds = 120', { ttl: 120 }],
  ];
  for (const [name, about, options] of shapes) {
    const event = { id: `pay-${name}`, amount: 1 };
    const snapshot = await inProgress(recorder, event, options);
    const ask = questions(event, options, options.validate && { ...event, amount: 2 });
    await recorder.sample({ name, about, key: event.id, snapshot, ask, ttl: (options.ttl ?? 3600) * 1000, momentsIn: MOMENTS });
  }
}

async function recordOrphans(recorder) {
  const event = { id: 'pay-orphan', amount: 1 };
  const snapshot = await inProgress(recorder, event, { left: 1 });
  await sleep(50);
  const sample = { key: event.id, ask: questions(event), ttl: HOUR, momentsIn: MOMENTS };
  await recorder.sample({ name: 'orphan', about: "the function's time is over, the record is not", snapshot, ...sample });

  // The library reclaims the orphan and leaves `<key>:lock` beside the record on purpose.
  await recorder.putBack(snapshot);
  let reclaimed;
  await service(async () => {
    reclaimed = await recorder.snapshot();
  })(event);
  await recorder.empty();
  await recorder.sample({ name: 'reclaimed', about: 'an orphan that another function has taken over', snapshot: reclaimed, ...sample });

  await recorder.putBack(snapshot);
  await client.set(`${snapshot.keys[0].key}:lock`, 'true', { EX: 10 });
  const held = await recorder.snapshot();
  await recorder.sample({ name: 'orphan-being-reclaimed', about: 'an orphan whose lock another function holds', snapshot: held, ...sample });
}

async function recordResults(recorder) {
  const bodies = {
    object: { paymentId: 17, message: 'über ✓', statusCode: 200 },
    list: [1, 2.5, 'x'],
    text: 'done',
    number: 7,
    'empty-object': {},
    null: null,
    undefined: undefined,
  };
  for (const [kind, value] of Object.entries(bodies)) {
    const event = { id: `pay-done-${kind}`, amount: 1 };
    const snapshot = await completed(recorder, event, value);
    await recorder.sample({ name: `completed-${kind}`, about: 'a stored result', key: event.id, snapshot, ask: questions(event), ttl: HOUR, momentsIn: MOMENTS });
  }
  const event = { id: 'pay-done-validation', amount: 1 };
  const options = { validate: 'amount' };
  const snapshot = await completed(recorder, event, { ok: true }, options);
  const ask = questions(event, options, { ...event, amount: 2 });
  const about = 'a stored result of a deployment that compares payloads';
  await recorder.sample({ name: 'completed-validation', about, key: event.id, snapshot, ask, ttl: HOUR, momentsIn: MOMENTS });
}

async function recordOdd(recorder) {
  const event = { id: 'pay-past', amount: 1 };
  const past = await completed(recorder, event, { ok: true }, { ttl: 1 });
  const key = past.keys[0].key;
  past.keys[0].pttl = -1;
  await sleep(2100);
  const sample = { key: event.id, ask: questions(event) };
  const about = 'a result past its own expiration; PERSIST by hand kept the Redis key';
  await recorder.sample({ name: 'completed-past', about, snapshot: past, ttl: 1000, momentsIn: MOMENTS, ...sample });

  const attributes = { statusAttr: 's', expiryAttr: 'e', inProgressExpiryAttr: 'ipe', dataAttr: 'd' };
  const own = { id: 'pay-attributes', amount: 1 };
  const renamed = await completed(recorder, own, { ok: true }, attributes);
  const named = "attribute names of the deployment's own";
  await recorder.sample({ name: 'completed-attributes', about: named, key: own.id, snapshot: renamed, ask: questions(own, attributes), ttl: HOUR, momentsIn: { e: 's' } });

  const byHand = [
    ['not-json', 'text that another program wrote', ['SET', key, 'not JSON', 'EX', 3600]],
    ['wrong-type', 'a hash that another program wrote', ['HSET', key, 'status', 'COMPLETED']],
    ['no-expiration', 'a record without its expiration, written by hand', ['SET', key, '{"status":"COMPLETED"}', 'EX', 3600]],
    ['unknown-status', 'a status that the library does not know, written by hand', ['SET', key, '{"status":"PENDING","expiration":9999999999}', 'EX', 3600]],
  ];
  for (const [name, about, command] of byHand) {
    await recorder.wire.call(...command);
    await recorder.sample({ name, about, snapshot: await recorder.snapshot(), ...sample });
  }

  const failing = service(async () => {
    throw new Error('card declined');
  });
  await failing(event).catch(() => {});
  const gone = await recorder.snapshot();
  await recorder.sample({ name: 'failed', about: 'the handler threw: the library removed the record', snapshot: gone, ...sample });
}

async function record(path) {
  const recorder = await Recorder.start(HEADER, ['redis']);
  await recordLocks(recorder);
  await recordOrphans(recorder);
  await recordResults(recorder);
  await recordOdd(recorder);
  recorder.write(path);
}

async function begin(key) {
  await new Promise((taken, refused) => {
    const never = () => new Promise(() => taken());
    service(never)({ id: key, amount: 1 }).catch(refused);
  });
  return { key };
}

const answer = (key) => ask(service(async () => ({ statusCode: 201 })), { id: key, amount: 1 });

await main({ record, begin, answer });

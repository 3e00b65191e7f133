// Drives BullMQ's deduplication and its job ids, and records what the library writes and answers.
//
//   drive.mjs record FILE   every state, into FILE
//   drive.mjs begin KEY     adds a job with the deduplication id KEY and leaves the job in the queue
//   drive.mjs answer KEY    what adding a job with the deduplication id KEY gets now
//
// A sample keeps the Redis keys that decide: the deduplication key, the job's hash, and the lock of a job at work.

import { Queue, Worker } from 'bullmq';

import { Recorder, main, refusal, socketPath, versionOf } from './recorder.mjs';

const HEADER = {
  library: 'bullmq',
  version: versionOf('bullmq'),
  registry: 'npm',
  source: 'https://github.com/taskforcesh/bullmq',
  schema: 'bullmq-deduplication',
};
const connection = () => ({ path: socketPath(), maxRetriesPerRequest: null });
const MOMENTS = { timestamp: 'ms', processedOn: 'ms', finishedOn: 'ms' };
const DECIDES = (prefix) => new RegExp(`^${prefix}:payments:(de:.*|dn:.*|[0-9]+|pay-[^:]*|[^:]+:lock)$`);

/** Opens a queue for as long as `use` works with the queue. */
async function queue(use, prefix = 'bull') {
  const opened = new Queue('payments', { connection: connection(), prefix });
  try {
    return await use(opened);
  } finally {
    await opened.close();
  }
}

const add = (options, amount = 1, prefix) => queue((opened) => opened.add('pay', { amount }, options), prefix);

/** What adding a job gets: a job that is there already is given back under its own id, and nothing is queued. */
async function ask(options, amount, prefix) {
  return queue(async (opened) => {
    try {
      const before = (await opened.getJobs()).map((job) => job.id);
      const job = await opened.add('pay', { amount }, options);
      const after = (await opened.getJobs()).map((job) => job.id);
      const replaced = before.filter((id) => !after.includes(id));
      const text = [`job ${job.id}`, ...replaced.map((id) => `in place of job ${id}`)].join(' ');
      return { answer: before.includes(job.id) ? 'conflict' : 'executed', text };
    } catch (error) {
      return refusal('error', error);
    }
  }, prefix);
}

const questions = (options, prefix) => ({ same: () => ask(options, 1, prefix), other: () => ask(options, 2, prefix) });

/** Runs the jobs of the queue; `work` sees each job. Ends when one has ended, or when `work` says so. */
async function worker(work, prefix = 'bull') {
  let ended;
  const end = new Promise((resolve) => (ended = resolve));
  const working = new Worker('payments', (job) => work(job, ended), { connection: connection(), prefix });
  working.on('completed', ended).on('failed', ended);
  await end;
  // The snapshot of a job at work is taken by now: closing does not wait for jobs.
  await working.close(true);
}

async function sampleOf(recorder, name, about, key, options, { prefix = 'bull', ttl, schema, snapshot } = {}) {
  const seen = snapshot ?? (await recorder.snapshot());
  const more = { ...(prefix === 'bull' ? {} : { prefix: `${prefix}:` }), ...(schema ? { schema } : {}) };
  await recorder.sample({ name, about, key, snapshot: seen, ask: questions(options, prefix), ttl, momentsIn: MOMENTS, only: DECIDES(prefix), ...more });
  await recorder.empty();
}

async function recordDeduplication(recorder) {
  const shapes = [
    ['simple-waiting', 'simple mode: no TTL, the key ends with the job', {}, {}],
    ['throttle-waiting', 'throttle mode: ttl = 60000', { ttl: 60_000 }, { ttl: 60_000 }],
    ['debounce-delayed', 'debounce mode: each addition replaces the delayed job', { ttl: 60_000, extend: true, replace: true }, { ttl: 60_000 }],
    ['keep-last-waiting', 'keepLastIfActive: the ttl is ignored', { keepLastIfActive: true, ttl: 60_000 }, {}],
    ['simple-prefix', "a prefix of the deployment's own", {}, { prefix: '{shop}' }],
  ];
  for (const [name, about, deduplication, more] of shapes) {
    const options = { deduplication: { id: `pay-${name}`, ...deduplication }, ...(deduplication.replace ? { delay: 60_000 } : {}) };
    await add(options, 1, more.prefix);
    await sampleOf(recorder, name, about, `pay-${name}`, options, more);
  }
}

async function recordWork(recorder) {
  const shapes = [
    ['simple-active', 'simple mode, a worker at the job', {}],
    ['throttle-active', 'throttle mode, a worker at the job', { ttl: 60_000 }],
    ['keep-last-active', 'keepLastIfActive, a worker at the job: another addition is kept for later', { keepLastIfActive: true }],
  ];
  for (const [name, about, deduplication] of shapes) {
    const options = { deduplication: { id: `pay-${name}`, ...deduplication } };
    await add(options);
    let snapshot;
    await worker(async () => {
      snapshot = await recorder.snapshot();
    });
    await recorder.empty();
    await sampleOf(recorder, name, about, `pay-${name}`, options, { snapshot, ttl: deduplication.ttl });
  }
}

/** A handler that fails. The stack goes into Redis, and the real one would say where this driver stands. */
async function fails() {
  const error = new Error('card declined');
  error.stack = 'Error: card declined\n    at pay (/srv/shop/pay.js:17:11)';
  throw error;
}

async function recordEnds(recorder) {
  const ends = [
    ['simple-completed', 'simple mode, the job is done: the key is gone', {}, async () => ({ paid: true })],
    ['simple-failed', 'simple mode, the job failed: the key is gone', {}, fails],
    ['throttle-completed', 'throttle mode, the job is done: the key lives on', { ttl: 60_000 }, async () => ({ paid: true })],
  ];
  for (const [name, about, deduplication, work] of ends) {
    const options = { deduplication: { id: `pay-${name}`, ...deduplication } };
    await add(options);
    await worker(work);
    await sampleOf(recorder, name, about, `pay-${name}`, options, { ttl: deduplication.ttl });
  }
  const options = { deduplication: { id: 'pay-stale' } };
  const job = await add(options);
  await recorder.wire.call('DEL', `bull:payments:${job.id}`);
  await sampleOf(recorder, 'simple-stale', 'simple mode, the job was removed by hand: the next addition takes the key over', 'pay-stale', options);
  await recorder.wire.call('HSET', 'bull:payments:de:pay-stale', 'job', '1');
  await sampleOf(recorder, 'wrong-type', 'a hash that another program wrote', 'pay-stale', options);
}

/** A job id of the caller's own is an idempotency key too: an addition with an id that is there adds nothing. */
async function recordJobs(recorder) {
  const schema = 'bullmq-job';
  const options = (key, more) => ({ jobId: key, ...more });
  await add(options('pay-waiting'));
  await sampleOf(recorder, 'job-waiting', 'a job in the queue', 'pay-waiting', options('pay-waiting'), { schema });
  await add(options('pay-delayed', { delay: 60_000 }));
  await sampleOf(recorder, 'job-delayed', 'a delayed job', 'pay-delayed', options('pay-delayed'), { schema });
  await add(options('pay-active'));
  let snapshot;
  await worker(async () => {
    snapshot = await recorder.snapshot();
  });
  await recorder.empty();
  await sampleOf(recorder, 'job-active', 'a worker at the job', 'pay-active', options('pay-active'), { schema, snapshot });
  await add(options('pay-done'));
  await worker(async () => ({ paid: true, text: 'über ✓' }));
  await sampleOf(recorder, 'job-completed', 'a job that is done', 'pay-done', options('pay-done'), { schema });
  await add(options('pay-done-null'));
  await worker(async () => undefined);
  await sampleOf(recorder, 'job-completed-null', 'a job that is done and returned nothing', 'pay-done-null', options('pay-done-null'), { schema });
  await add(options('pay-failed'));
  await worker(fails);
  await sampleOf(recorder, 'job-failed', 'a job that failed', 'pay-failed', options('pay-failed'), { schema });
  await add(options('pay-removed', { removeOnComplete: true }));
  await worker(async () => ({ paid: true }));
  await sampleOf(recorder, 'job-removed', 'removeOnComplete: a job that is done leaves nothing', 'pay-removed', options('pay-removed'), { schema });
}

async function record(path) {
  const recorder = await Recorder.start(HEADER, ['ioredis']);
  await recordDeduplication(recorder);
  await recordWork(recorder);
  await recordEnds(recorder);
  await recordJobs(recorder);
  recorder.write(path);
}

async function begin(key) {
  await add({ deduplication: { id: key } });
  return { key };
}

await main({ record, begin, answer: (key) => ask({ deduplication: { id: key } }) });

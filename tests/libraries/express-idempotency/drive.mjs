// Drives express-idempotency with its Redis adapter in an Express server, and records what the library writes and answers.
//
//   drive.mjs record FILE   every state, into FILE
//   drive.mjs begin KEY     takes the key and leaves the record in progress: the handler never answers
//   drive.mjs answer KEY    what a request with the key gets now

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import express from 'express';
import * as idempotency from 'express-idempotency';
import RedisAdapterModule from 'express-idempotency-redis-adapter';

import { Recorder, main, socketPath, versionOf } from './recorder.mjs';

const HEADER = {
  library: 'express-idempotency',
  version: versionOf('express-idempotency'),
  registry: 'npm',
  source: 'https://github.com/VilledeMontreal/express-idempotency',
  schema: 'express-idempotency',
};
const DAY = 86_400_000;
const RedisAdapter = RedisAdapterModule.default ?? RedisAdapterModule;
// What the library prints of a response that it does not keep.
console.log = () => {};

/** A server with one handler; `ran` says whether the handler did its work. */
class Service {
  ran = false;

  static async start(work, options = {}) {
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), 'idemctl-express.'));
    service.adapter = new RedisAdapter({ connectionConfig: { socket: { path: socketPath() } }, ...options });
    await service.adapter.connect();
    const app = express();
    app.use(express.json());
    app.use(idempotency.idempotency({ dataAdapter: service.adapter }));
    app.all('*', (req, res) => {
      // The library calls the handler for a hit too; the handler has to ask.
      if (idempotency.getSharedIdempotencyService().isHit(req)) return;
      service.ran = true;
      work(req, res);
    });
    app.use((error, req, res, next) => (res.headersSent ? next(error) : res.send(error.message)));
    service.http = app.listen(join(service.folder, 'http'));
    await once(service.http, 'listening');
    return service;
  }

  /** Sends a request; resolves with status and body. */
  send(key, { body = { amount: 1 }, path = '/payments', method = 'POST' } = {}) {
    const headers = {
      host: 'pay.example',
      'content-type': 'application/json',
      'idempotency-key': key,
      authorization: 'Bearer not-a-real-token',
      cookie: 'session=not-a-real-session',
    };
    return new Promise((resolve, reject) => {
      const sent = httpRequest({ socketPath: join(this.folder, 'http'), path, method, headers }, async (answer) => {
        const parts = await answer.toArray();
        resolve({ status: answer.statusCode, body: Buffer.concat(parts).toString() });
      });
      sent.on('error', reject);
      sent.end(JSON.stringify(body));
    });
  }

  async stop() {
    this.http.closeAllConnections();
    this.http.close();
    await this.adapter.disconnect();
    rmSync(this.folder, { recursive: true });
  }
}

/** What a request gets, in the words of the fixtures. */
async function ask(key, more, options) {
  const service = await Service.start((req, res) => res.status(201).json({ id: 2 }), options);
  // A handler of Express 4 does not see what an asynchronous middleware throws: the client would wait for ever.
  const hangs = new Promise((resolve) => process.once('unhandledRejection', (error) => resolve({ error })));
  const { status, body, error } = await Promise.race([service.send(key, more), hangs]);
  process.removeAllListeners('unhandledRejection');
  await service.stop();
  if (error) return { answer: 'error', text: `the client gets no answer; ${error.name}: ${error.message}` };
  const answer = service.ran ? 'executed' : ({ 409: 'conflict', 417: 'mismatch', 500: 'error' }[status] ?? 'replay');
  return { answer, text: `${status} ${body}` };
}

const questions = (key, more, others, options) => ({
  same: () => ask(key, more, options),
  ...Object.fromEntries(Object.entries(others).map(([name, other]) => [name, () => ask(key, other, options)])),
});

const OTHERS = { other: { body: { amount: 2 } }, 'other-path': { path: '/refunds' }, 'other-method': { method: 'PUT' } };

async function recordLocks(recorder) {
  const shapes = [
    ['in-progress', 'a request at work', {}, {}],
    ['in-progress-query', 'a request at work, with a query', { path: '/payments?dry=1' }, {}],
    ['in-progress-short', 'ttl = 60', {}, { ttl: 60 }],
  ];
  for (const [name, about, more, options] of shapes) {
    const key = `pay-${name}`;
    let snapshot;
    const seen = async (req, res) => {
      snapshot = await recorder.snapshot();
      res.status(201).json({ id: 1 });
    };
    const service = await Service.start(seen, options);
    await service.send(key, more);
    await settled(recorder, key, '"response"');
    await service.stop();
    await recorder.empty();
    await recorder.sample({ name, about, key, snapshot, ask: questions(key, more, OTHERS, options), ttl: (options.ttl ?? 86_400) * 1000 });
  }
}

/** Waits until the library has stored what it stores after the response is sent, at most two seconds. */
async function settled(recorder, key, text) {
  for (let tries = 0; tries < 100; tries += 1) {
    const value = await recorder.wire.call('GET', key);
    if (text === null ? value === null : value?.includes(text)) return;
    await sleep(20);
  }
  throw new Error(`the library did not store what follows the response of ${key}`);
}

async function recordResults(recorder) {
  const bodies = {
    object: (req, res) => res.status(201).json({ id: 1, message: 'über ✓' }),
    text: (req, res) => res.status(200).type('text/plain').send('done'),
    'no-content': (req, res) => res.status(204).send(),
    binary: (req, res) => res.status(200).type('application/octet-stream').send(Buffer.from([0, 255, 254])),
  };
  for (const [kind, work] of Object.entries(bodies)) {
    const key = `pay-done-${kind}`;
    const service = await Service.start(work);
    await service.send(key);
    await settled(recorder, key, '"response"');
    const snapshot = await recorder.snapshot();
    await service.stop();
    await recorder.empty();
    await recorder.sample({ name: `completed-${kind}`, about: 'a stored response', key, snapshot, ask: questions(key, {}, OTHERS), ttl: DAY });
  }
}

async function recordOdd(recorder) {
  const key = 'pay-failed';
  const service = await Service.start((req, res) => res.status(402).json({ error: 'card declined' }));
  await service.send(key);
  await settled(recorder, key, null);
  await service.stop();
  const about = 'the response was no 2xx: the library removed the record';
  await recorder.sample({ name: 'failed', about, key, snapshot: await recorder.snapshot(), ask: questions(key, {}, {}) });
  const byHand = [
    ['not-json', 'text that another program wrote', ['SET', key, 'not JSON', 'EX', 3600]],
    ['empty', 'an empty text that another program wrote', ['SET', key, '', 'EX', 3600]],
    ['wrong-type', 'a hash that another program wrote', ['HSET', key, 'request', '{}']],
    ['no-request', 'a record without its request, written by hand', ['SET', key, '{"response":{"statusCode":200,"body":"ok","headers":{}}}', 'EX', 3600]],
  ];
  for (const [name, about, command] of byHand) {
    await recorder.wire.call(...command);
    await recorder.sample({ name, about, key, snapshot: await recorder.snapshot(), ask: questions(key, {}, {}) });
  }
}

async function record(path) {
  const recorder = await Recorder.start(HEADER, ['express', 'express-idempotency-redis-adapter']);
  await recordLocks(recorder);
  await recordResults(recorder);
  await recordOdd(recorder);
  recorder.write(path);
}

async function begin(key) {
  let reached;
  const taken = new Promise((resolve) => (reached = resolve));
  const service = await Service.start(() => reached());
  service.send(key).catch(() => {});
  await taken;
  rmSync(service.folder, { recursive: true });
  return { key };
}

await main({ record, begin, answer: (key) => ask(key) });

// A payment service with express-idempotency and its Redis adapter, as their READMEs show it.
//
//   serve.mjs PORT     with the server's socket in IDEMCTL_LIBRARY_SOCKET

import { setTimeout as sleep } from 'node:timers/promises';

import express from 'express';
import * as idempotency from 'express-idempotency';
import RedisAdapterModule from 'express-idempotency-redis-adapter';

const RedisAdapter = RedisAdapterModule.default ?? RedisAdapterModule;
const adapter = new RedisAdapter({ connectionConfig: { socket: { path: process.env.IDEMCTL_LIBRARY_SOCKET } } });
await adapter.connect();

let payments = 0;
const app = express();
app.use(express.json());
app.get('/effects', (req, res) => res.type('text').send(String(payments)));
app.post('*', idempotency.idempotency({ dataAdapter: adapter }));
app.post('/payments', async (req, res) => {
  if (idempotency.getSharedIdempotencyService().isHit(req)) return;
  const { order, amount } = req.body;
  if (!(amount > 0)) return res.status(400).json({ error: 'the amount is not above 0' });
  await sleep(200);
  payments += 1;
  const id = `pay_${payments}`;
  res.status(201).location(`/payments/${id}`).json({ id, order, amount });
});
app.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'));

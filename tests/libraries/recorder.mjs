// Records what a Node.js library left in Redis and what the library answers there.
//
// A driver makes a state with the library, takes a snapshot, and hands `Recorder.sample` a function that asks the library.
// The snapshot is put back before each question, because most answers change the state.
//
// The server is named by IDEMCTL_LIBRARY_SOCKET. Recording empties the server, so recording refuses one that holds keys.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect as connectTo } from 'node:net';
import { basename } from 'node:path';

/** The socket of the private server. */
export function socketPath() {
  const path = process.env.IDEMCTL_LIBRARY_SOCKET;
  if (!path) throw new Error('IDEMCTL_LIBRARY_SOCKET names no server: scripts/libraries.sh starts one and sets the variable');
  return path;
}

/** The version of an installed package, out of its own package.json. */
export function versionOf(name) {
  const entry = createRequire(new URL('drive.mjs', import.meta.url)).resolve.paths(name)[0];
  return JSON.parse(readFileSync(`${entry}/${name}/package.json`, 'utf8')).version;
}

/** A connection of the recorder's own. The libraries bring clients that differ in what they make of bytes. */
export class Wire {
  #socket = connectTo(socketPath());
  #read = Buffer.alloc(0);
  #waiting = [];

  constructor() {
    this.#socket.on('data', (bytes) => {
      this.#read = Buffer.concat([this.#read, bytes]);
      for (let end; (end = whole(this.#read, 0)) !== undefined; ) {
        const { resolve, reject } = this.#waiting.shift();
        const value = parsed(this.#read, { at: 0 });
        this.#read = this.#read.subarray(end);
        value instanceof Error ? reject(value) : resolve(value);
      }
    });
  }

  /** Sends a command; a bulk string comes back as a Buffer. */
  call(...words) {
    const parts = words.map((word) => (Buffer.isBuffer(word) ? word : Buffer.from(String(word))));
    const bytes = parts.flatMap((part) => [Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n')]);
    this.#socket.write(Buffer.concat([Buffer.from(`*${parts.length}\r\n`), ...bytes]));
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  close() {
    this.#socket.destroy();
  }
}

/** Where the reply that begins at `at` ends; undefined while bytes are missing. */
function whole(bytes, at) {
  const line = bytes.indexOf('\r\n', at);
  if (line < 0) return undefined;
  const count = Number(bytes.toString('latin1', at + 1, line));
  let end = line + 2;
  if (bytes[at] === 0x24 && count >= 0) end += count + 2;
  for (let left = bytes[at] === 0x2a ? count : 0; left > 0; left -= 1) {
    end = whole(bytes, end);
    if (end === undefined) return undefined;
  }
  return end <= bytes.length ? end : undefined;
}

/** The reply at `place.at`, which moves behind the reply. */
function parsed(bytes, place) {
  const line = bytes.indexOf('\r\n', place.at);
  const [kind, text] = [bytes[place.at], bytes.toString('utf8', place.at + 1, line)];
  place.at = line + 2;
  if (kind === 0x2b) return text;
  if (kind === 0x2d) return new Error(text);
  if (kind === 0x3a) return Number(text);
  if (Number(text) < 0) return null;
  if (kind === 0x2a) return Array.from({ length: Number(text) }, () => parsed(bytes, place));
  const from = place.at;
  place.at += Number(text) + 2;
  return Buffer.from(bytes.subarray(from, from + Number(text)));
}

/** Bytes as text where they are UTF-8, else as base64: nothing is lost either way. */
function bytesAsJson(bytes) {
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? { text } : { base64: bytes.toString('base64') };
}

/** The texts in a JSON value that say a moment; `pointers` names each field with its unit. */
function moments(bytes, pointers) {
  let fields;
  try {
    fields = JSON.parse(bytes);
  } catch {
    return [];
  }
  const found = Object.entries(pointers).filter(([name]) => fields?.[name] !== undefined && fields[name] !== null);
  return found.map(([name, unit]) => ({ text: String(fields[name]), unit }));
}

/** An answer that is an exception of the library. */
export function refusal(answer, error) {
  return { answer, text: `${error.code ?? error.name}: ${error.message}` };
}

/** The samples of one library. */
export class Recorder {
  samples = [];

  static async start(header, packages) {
    const recorder = new Recorder();
    recorder.wire = new Wire();
    if ((await recorder.wire.call('DBSIZE')) > 0) {
      throw new Error('the server of IDEMCTL_LIBRARY_SOCKET holds keys: recording would remove them');
    }
    const server = (await recorder.wire.call('INFO', 'server')).toString();
    const beside = packages.map((name) => `${name} ${versionOf(name)}`);
    recorder.header = {
      format: 1,
      ...header,
      origin: 'driven',
      runtime: [`Node.js ${process.versions.node}`, ...beside].join(', '),
      server: `Redis ${/redis_version:(\S+)/.exec(server)[1]}`,
      recorded_at: new Date().toISOString(),
    };
    return recorder;
  }

  empty() {
    return this.wire.call('FLUSHALL');
  }

  /** Every Redis key with its bytes and its expiry. */
  async snapshot() {
    const [, names] = await this.wire.call('SCAN', '0', 'COUNT', '10000');
    const keys = [];
    for (const key of names.sort(Buffer.compare)) {
      keys.push({ key, dump: await this.wire.call('DUMP', key), pttl: await this.wire.call('PTTL', key) });
    }
    return { keys };
  }

  /** Makes the server what the snapshot saw. A key lives as long as the key had left then. */
  async putBack(snapshot) {
    await this.empty();
    for (const { key, dump, pttl } of snapshot.keys) await this.wire.call('RESTORE', key, Math.max(pttl, 0), dump);
  }

  /** Writes down a state; `ask` maps a kind of request (`same`, `other`) to a function that asks the library. */
  async sample({ name, about, key, snapshot, ask, ttl, momentsIn = {}, only, ...more }) {
    // The moment that counts is this one: what lapses by a moment in the value is asked of the library now.
    const takenAt = Date.now();
    await this.putBack(snapshot);
    const redisKeys = [];
    for (const one of snapshot.keys.filter(({ key }) => !only || only.test(key.toString()))) {
      redisKeys.push(await this.#redisKey(one.key, ttl, momentsIn));
    }
    const next = {};
    for (const [kind, question] of Object.entries(ask)) {
      await this.putBack(snapshot);
      next[kind] = await question();
    }
    await this.empty();
    this.samples.push({ name, about, key, ...more, taken_at_ms: takenAt, redis_keys: redisKeys, next });
  }

  async #redisKey(key, ttl, momentsIn) {
    const type = await this.wire.call('TYPE', key);
    const name = bytesAsJson(key);
    const told = { ...(name.text === undefined ? { key_base64: name.base64 } : { key: name.text }), type };
    if (type === 'string') {
      const value = await this.wire.call('GET', key);
      told.value = bytesAsJson(value);
      const found = moments(value, momentsIn);
      if (found.length) told.moments = found;
    } else if (type === 'hash') {
      const flat = await this.wire.call('HGETALL', key);
      told.fields = {};
      for (let at = 0; at < flat.length; at += 2) told.fields[flat[at].toString()] = bytesAsJson(flat[at + 1]);
      const found = Object.entries(momentsIn).filter(([name]) => told.fields[name]);
      if (found.length) told.moments = found.map(([field, unit]) => ({ field, text: told.fields[field].text, unit }));
    }
    told.pttl_ms = await this.wire.call('PTTL', key);
    if (ttl) told.configured_ttl_ms = ttl;
    return told;
  }

  /** Writes the fixtures. */
  write(path) {
    writeFileSync(path, `${JSON.stringify({ ...this.header, samples: this.samples }, null, 1)}\n`);
    console.error(`${this.samples.length} samples in ${basename(path)}`);
  }
}

/** The three modes of a driver: `record FILE`, `begin KEY`, `answer KEY`. */
export async function main(modes) {
  const [mode, what, ...rest] = process.argv.slice(2);
  if (!modes[mode] || !what || rest.length) {
    console.error('usage: drive.mjs record FILE | begin KEY | answer KEY');
    process.exit(2);
  }
  const told = await modes[mode](what);
  // A pipe takes 64 KiB at a time, so the process has to wait for the rest.
  if (mode !== 'record') await new Promise((written) => process.stdout.write(`${JSON.stringify(told)}\n`, written));
  // The clients of the libraries keep the process alive.
  process.exit(0);
}

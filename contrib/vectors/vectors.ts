// Runs the cases of a vectors file (format 2, see README.md) on a Redis server.
//
//     node vectors.ts [vectors.json [folder of the Lua scripts]]
//
// REDIS_URL names the server. Each case deletes the Redis keys that it names, so use a server without
// data. To test a library, let `call` use the library instead of the scripts.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

type Bytes = string | { base64: string };
type Reply = Buffer | number | null | Error | Reply[];
type Expected = Bytes | { error: string } | { between: [number, number] } | Expected[];
type Stored = { list: Bytes[] } | { value: Bytes; ttl_ms: any };
type Step = { call: string; keys: string[]; args: Bytes[]; reply: Expected } | { wait_ms: number };
type Case = { name: string; before: Record<string, Stored>; steps: Step[]; after: Record<string, Stored> };

const reference = join(dirname(fileURLToPath(import.meta.url)), "../../lua/reference/vectors.json");
const file = process.argv[2] ?? reference;
const folder = process.argv[3] ?? dirname(file);
if (!process.env.REDIS_URL) throw new Error("REDIS_URL is not set");
const server = new Redis(process.env.REDIS_URL);

/** Executes one step. An error reply is thrown. */
async function call(name: string, keys: string[], args: Buffer[]): Promise<Reply> {
  const script = readFileSync(join(folder, `${name}.lua`));
  return (await server.callBuffer("EVAL", script, keys.length, ...keys, ...args)) as Reply;
}

const toBytes = (text: Bytes) => (typeof text === "string" ? Buffer.from(text) : Buffer.from(text.base64, "base64"));

function fits(reply: Reply, expected: Expected): boolean {
  if (Array.isArray(expected)) {
    return Array.isArray(reply) && reply.length === expected.length && expected.every((item, i) => fits(reply[i], item));
  }
  if (typeof expected === "object" && "error" in expected) {
    // Redis 6.2 wraps some errors in another text, so the code may be any word of it.
    return reply instanceof Error && reply.message.split(/\W+/).includes(expected.error);
  }
  if (typeof expected === "object" && "between" in expected) {
    return typeof reply === "number" && expected.between[0] <= reply && reply <= expected.between[1];
  }
  return Buffer.isBuffer(reply) && reply.equals(toBytes(expected));
}

async function put(key: string, stored: Stored) {
  if ("list" in stored) await server.rpush(key, ...stored.list.map(toBytes));
  else if (stored.ttl_ms === null) await server.set(key, toBytes(stored.value));
  else await server.set(key, toBytes(stored.value), "PX", stored.ttl_ms);
}

async function holds(key: string, stored: Stored | undefined, times: [number, number]): Promise<boolean> {
  const type = await server.type(key);
  if (stored === undefined) return type === "none";
  if ("list" in stored) return type === "list" && fits(await server.lrangeBuffer(key, 0, -1), stored.list);
  if (type !== "string") return false;
  const [least, most] = stored.ttl_ms ?? [-1, -1];
  const ttl = await server.pttl(key);
  // In Latin-1 each byte is one character, so that a pattern can match bytes.
  const escaped = toBytes(stored.value).toString("latin1").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(`^${escaped.replaceAll("\\{time\\}", "(\\d+)")}$`, "s");
  const found = (await server.getBuffer(key))!.toString("latin1").match(pattern);
  const inTime = found?.slice(1).every((time) => times[0] <= Number(time) && Number(time) <= times[1]);
  return inTime === true && least <= ttl && ttl <= most;
}

async function now(): Promise<number> {
  const [seconds, micros] = (await server.time()).map(Number);
  return seconds * 1000 + Math.floor(micros / 1000);
}

/** What differs from the case, in words. */
async function run({ before, steps, after }: Case): Promise<string[]> {
  const called = steps.flatMap((step) => ("call" in step ? step.keys : []));
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after), ...called])].sort();
  await server.del(keys);
  for (const [key, stored] of Object.entries(before)) await put(key, stored);
  const began = await now();
  const wrong: string[] = [];
  for (const [index, step] of steps.entries()) {
    if ("wait_ms" in step) {
      await setTimeout(step.wait_ms);
      continue;
    }
    const reply = await call(step.call, step.keys, step.args.map(toBytes)).catch((error: Error) => error);
    if (!fits(reply, step.reply)) {
      wrong.push(`step ${index + 1} (${step.call}) replied ${reply}, not ${JSON.stringify(step.reply)}`);
    }
  }
  const times: [number, number] = [began, await now()];
  for (const key of keys) {
    if (!(await holds(key, after[key], times))) wrong.push(`${key} differs afterwards`);
  }
  await server.del(keys);
  return wrong;
}

const vectors: { format: number; cases: Case[] } = JSON.parse(readFileSync(file, "utf8"));
if (vectors.format !== 2) throw new Error(`${file}: this program reads format 2, not ${vectors.format}`);
let failed = 0;
for (const each of vectors.cases) {
  const wrong = await run(each);
  if (wrong.length > 0) failed += 1;
  for (const difference of wrong) console.log(`${each.name}: ${difference}`);
}
console.log(`${vectors.cases.length} cases, ${failed} failed`);
server.disconnect();
process.exitCode = failed === 0 ? 0 : 1;

// Runs the cases of a vectors file (see README.md): npx tsx vectors.ts VECTORS.JSON SCRIPTS_FOLDER
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";

const [file, folder] = process.argv.slice(2);
const server = new Redis(process.env.REDIS_URL!);
const toBytes = (text: any) => (text.base64 ? Buffer.from(text.base64, "base64") : Buffer.from(text));

/** Executes one step. To test a library, let this function call the library. */
const call = (name: string, keys: string[], args: Buffer[]) =>
  server.callBuffer("EVAL", readFileSync(`${folder}/${name}.lua`), keys.length, ...keys, ...args);

function fits(reply: any, expected: any): boolean {
  if (Array.isArray(expected))
    return reply?.length === expected.length && expected.every((item, index) => fits(reply[index], item));
  if (expected.error) return reply instanceof Error && reply.message.split(/\W+/).includes(expected.error);
  const [least, most] = expected.between ?? [];
  if (expected.between) return typeof reply === "number" && least <= reply && reply <= most;
  // In Latin-1 each byte is one character, so that a pattern can match bytes.
  const escaped = toBytes(expected).toString("latin1").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(`^${escaped.replaceAll("\\{time\\}", "\\d{13}")}$`, "s");
  return Buffer.isBuffer(reply) && pattern.test(reply.toString("latin1"));
}

async function holds(key: string, after: any): Promise<boolean> {
  const type = await server.type(key);
  if (after === null || !["string", "list"].includes(type)) return after === null && type === "none";
  const value = type === "list" ? await server.lrangeBuffer(key, 0, -1) : await server.getBuffer(key);
  return fits(value, after.value) && fits(await server.pttl(key), { between: after.ttl_ms ?? [-1, -1] });
}

async function* differences({ before, steps, after }: any): AsyncGenerator<string> {
  await server.del(Object.keys(after));
  for (const [key, { value, ttl_ms }] of Object.entries<any>(before)) {
    if (Array.isArray(value)) await server.rpush(key, ...value.map(toBytes));
    else await server.set(key, toBytes(value));
    if (ttl_ms !== null) await server.pexpire(key, ttl_ms);
  }
  for (const [index, step] of steps.entries()) {
    await new Promise((done) => setTimeout(done, step.wait_ms ?? 0));
    const reply = await call(step.call, step.keys, step.args.map(toBytes)).catch((error: Error) => error);
    if (!fits(reply, step.reply)) {
      yield `step ${index + 1} (${step.call}) replied ${reply}, not ${JSON.stringify(step.reply)}`;
    }
  }
  for (const [key, value] of Object.entries(after)) {
    if (!(await holds(key, value))) yield `${key} differs afterwards`;
  }
}

const { format, cases } = JSON.parse(readFileSync(file, "utf8"));
if (format !== 2) throw new Error(`${file}: this program reads format 2, not ${format}`);
const failed = new Set<string>();
for (const each of cases)
  for await (const difference of differences(each)) {
    console.log(`${each.name}: ${difference}`);
    failed.add(each.name);
  }
console.log(`${cases.length} cases, ${failed.size} failed`);
process.exit(failed.size === 0 ? 0 : 1);

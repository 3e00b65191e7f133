"""Runs the cases of a vectors file (format 2, see README.md) on a Redis server.

    python3 vectors.py [vectors.json [folder of the Lua scripts]]

REDIS_URL names the server. Each case deletes the Redis keys that it names, so use a server without
data. To test a library, let `call` use the library instead of the scripts.
"""
import base64, json, os, re, sys, time
from pathlib import Path

import redis

reference = Path(__file__).parent / "../../lua/reference"
file = Path(sys.argv[1]) if len(sys.argv) > 1 else reference / "vectors.json"
folder = Path(sys.argv[2]) if len(sys.argv) > 2 else file.parent
server = redis.Redis.from_url(os.environ["REDIS_URL"])

def call(name, keys, args):
    """Executes one step. An error reply is raised as redis.ResponseError."""
    script = (folder / f"{name}.lua").read_text()
    return server.eval(script, len(keys), *keys, *args)

def to_bytes(text):
    return base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode()

def reply_of(step):
    try:
        return call(step["call"], step["keys"], [to_bytes(arg) for arg in step["args"]])
    except redis.ResponseError as error:
        return error

def fits(reply, expected):
    if isinstance(expected, list):
        return isinstance(reply, list) and len(reply) == len(expected) and all(map(fits, reply, expected))
    if isinstance(expected, dict) and "error" in expected:
        # Redis 6.2 wraps some errors in another text, so the code may be any word of it.
        return isinstance(reply, redis.ResponseError) and expected["error"] in re.findall(r"\w+", str(reply))
    if isinstance(expected, dict) and "between" in expected:
        return isinstance(reply, int) and expected["between"][0] <= reply <= expected["between"][1]
    return reply == to_bytes(expected)

def put(key, stored):
    if "list" in stored:
        server.rpush(key, *map(to_bytes, stored["list"]))
    else:
        server.set(key, to_bytes(stored["value"]), px=stored["ttl_ms"])

def holds(key, stored, times):
    if stored is None:
        return not server.exists(key)
    if "list" in stored:
        return server.type(key) == b"list" and server.lrange(key, 0, -1) == [*map(to_bytes, stored["list"])]
    ttl, least_most = server.pttl(key), stored["ttl_ms"] or [-1, -1]
    pattern = re.escape(to_bytes(stored["value"])).replace(rb"\{time\}", rb"(\d+)")
    value = re.fullmatch(pattern, server.get(key) or b"", re.DOTALL) if server.type(key) == b"string" else None
    return (value and all(times[0] <= int(time) <= times[1] for time in value.groups())
            and least_most[0] <= ttl <= least_most[1])

def now():
    seconds, micros = server.time()
    return seconds * 1000 + micros // 1000

def run(case):
    """What differs from the case, in words."""
    keys = {*case["before"], *case["after"], *(key for step in case["steps"] for key in step.get("keys", []))}
    server.delete(*keys)
    for key, stored in case["before"].items():
        put(key, stored)
    began, wrong = now(), []
    for number, step in enumerate(case["steps"], 1):
        if "wait_ms" in step:
            time.sleep(step["wait_ms"] / 1000)
        elif not fits(reply := reply_of(step), step["reply"]):
            wrong.append(f"step {number} ({step['call']}) replied {reply!r}, not {step['reply']}")
    times = (began, now())
    wrong += [f"{key} differs afterwards" for key in sorted(keys) if not holds(key, case["after"].get(key), times)]
    server.delete(*keys)
    return wrong

vectors = json.loads(file.read_text())
if vectors["format"] != 2:
    sys.exit(f"{file}: this program reads format 2, not {vectors['format']}")
failed = 0
for case in vectors["cases"]:
    wrong = run(case)
    failed += bool(wrong)
    for difference in wrong:
        print(f"{case['name']}: {difference}")
print(f"{len(vectors['cases'])} cases, {failed} failed")
sys.exit(1 if failed else 0)

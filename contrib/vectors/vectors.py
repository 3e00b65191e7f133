"""Runs the cases of a vectors file (see README.md): python3 vectors.py VECTORS.JSON SCRIPTS_FOLDER"""
import base64, json, os, re, sys, time
import redis

_, file, folder = sys.argv
server = redis.Redis.from_url(os.environ["REDIS_URL"])

def call(name, keys, args):
    """Executes one step. To test a library, let this function call the library."""
    try:
        return server.eval(open(f"{folder}/{name}.lua").read(), len(keys), *keys, *args)
    except redis.ResponseError as error:
        return error

def to_bytes(text):
    return base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode()

def fits(reply, expected):
    match expected:
        case list():
            return isinstance(reply, list) and len(reply) == len(expected) and all(map(fits, reply, expected))
        case {"error": code}:
            return isinstance(reply, redis.ResponseError) and code in re.findall(r"\w+", str(reply))
        case {"between": [least, most]}:
            return isinstance(reply, int) and least <= reply <= most
    pattern = re.escape(to_bytes(expected)).replace(rb"\{time\}", rb"\d{13}")
    return isinstance(reply, bytes) and re.fullmatch(pattern, reply, re.DOTALL) is not None

def holds(key, after):
    kind = server.type(key).decode()
    if after is None or kind not in ("string", "list"):
        return after is None and kind == "none"
    value = server.get(key) if kind == "string" else server.lrange(key, 0, -1)
    return fits(value, after["value"]) and fits(server.pttl(key), {"between": after["ttl_ms"] or [-1, -1]})

def differences(case):
    server.delete(*case["after"])
    for key, before in case["before"].items():
        if isinstance(before["value"], list):
            server.rpush(key, *map(to_bytes, before["value"]))
        else:
            server.set(key, to_bytes(before["value"]), px=before["ttl_ms"])
    for number, step in enumerate(case["steps"], 1):
        time.sleep(step.get("wait_ms", 0) / 1000)
        reply = call(step["call"], step["keys"], [to_bytes(arg) for arg in step["args"]])
        if not fits(reply, step["reply"]):
            yield f"step {number} ({step['call']}) replied {reply!r}, not {step['reply']}"
    for key, after in case["after"].items():
        if not holds(key, after):
            yield f"{key} differs afterwards"

vectors = json.load(open(file))
assert vectors["format"] == 2, f"{file}: this program reads format 2, not {vectors['format']}"
failed = set()
for case in vectors["cases"]:
    for difference in differences(case):
        print(f"{case['name']}: {difference}")
        failed.add(case["name"])
print(f"{len(vectors['cases'])} cases, {len(failed)} failed")
sys.exit(1 if failed else 0)

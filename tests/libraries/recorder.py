"""Records what a Python library left in Redis and what the library answers there.

A driver makes a state with the library, takes a snapshot, and hands `Recorder.sample` a function that asks the library.
The snapshot is put back before each question, because most answers change the state.

The server is named by IDEMCTL_LIBRARY_SOCKET. Recording empties the server, so recording refuses one that holds keys.
"""

import base64
import datetime
import json
import os
import platform
import sys
import time

import redis


def connect():
    """The server of IDEMCTL_LIBRARY_SOCKET; the replies are bytes."""
    path = os.environ.get("IDEMCTL_LIBRARY_SOCKET")
    if not path:
        sys.exit("IDEMCTL_LIBRARY_SOCKET names no server: scripts/libraries.sh starts one and sets the variable")
    return redis.Redis(unix_socket_path=path)


def outcome(ask, ran):
    """What `ask` came to: `ran` holds something after the handler ran; an exception is named by the driver."""
    del ran[:]
    value = ask()
    return {"answer": "executed" if ran else "replay", "text": json.dumps(value, ensure_ascii=False, default=str)}


def refusal(answer, error):
    """An answer that is an exception of the library."""
    return {"answer": answer, "text": f"{type(error).__name__}: {error}"}


def bytes_as_json(value):
    """Bytes as text where they are UTF-8, else as base64: nothing is lost either way."""
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def moments(value, pointers):
    """The texts in a JSON value that say a moment; `pointers` names each field with its unit."""
    try:
        fields = json.loads(value)
    except ValueError:
        return []
    found = {name: unit for name, unit in pointers.items() if isinstance(fields, dict) and fields.get(name) is not None}
    return [{"text": str(fields[name]), "unit": unit} for name, unit in found.items()]


class Recorder:
    """The samples of one library."""

    def __init__(self, client, header):
        self.client, self.samples = client, []
        server = client.info("server")
        self.header = {
            "format": 1,
            **header,
            "origin": "driven",
            "runtime": f"Python {platform.python_version()}, redis-py {redis.__version__}",
            "server": f"Redis {server['redis_version']}",
            "recorded_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        }
        if client.dbsize():
            sys.exit("the server of IDEMCTL_LIBRARY_SOCKET holds keys: recording would remove them")

    def snapshot(self):
        """Every Redis key with its bytes and its expiry."""
        keys = sorted(self.client.scan_iter(count=1000))
        return {"keys": {key: (self.client.dump(key), self.client.pttl(key)) for key in keys}}

    def put_back(self, snapshot):
        """Makes the server what the snapshot saw. A key lives as long as the key had left then."""
        self.client.flushall()
        for key, (dump, pttl) in snapshot["keys"].items():
            self.client.restore(key, max(pttl, 0), dump)

    def sample(self, name, about, key, snapshot, ask, ttl=None, moments_in=None, **more):
        """Writes down a state; `ask` maps a kind of request (`same`, `other`) to a function that asks the library.

        The moment that counts is this one: what lapses by a moment in the value is asked of the library now.
        """
        taken_at = time.time()
        self.put_back(snapshot)
        redis_keys = [self._redis_key(one, ttl, moments_in or {}) for one in sorted(snapshot["keys"])]
        answers = {}
        for kind, question in ask.items():
            self.put_back(snapshot)
            answers[kind] = question()
        self.client.flushall()
        self.samples.append(
            {
                "name": name,
                "about": about,
                "key": key,
                **more,
                "taken_at_ms": int(taken_at * 1000),
                "redis_keys": redis_keys,
                "next": answers,
            }
        )

    def _redis_key(self, key, ttl, moments_in):
        kind = self.client.type(key).decode()
        told = {**bytes_as_json(key), "type": kind}
        told = {("key" if name == "text" else "key_base64" if name == "base64" else name): one for name, one in told.items()}
        if kind == "string":
            value = self.client.get(key)
            told["value"] = bytes_as_json(value)
            told["moments"] = moments(value, moments_in)
        elif kind == "hash":
            told["fields"] = {field.decode(): bytes_as_json(value) for field, value in self.client.hgetall(key).items()}
        told["pttl_ms"] = self.client.pttl(key)
        told["configured_ttl_ms"] = ttl
        return {name: one for name, one in told.items() if one not in (None, [])}

    def write(self, path):
        """Writes the fixtures."""
        with open(path, "w", encoding="utf-8") as out:
            json.dump({**self.header, "samples": self.samples}, out, ensure_ascii=False, indent=1)
            out.write("\n")
        print(f"{len(self.samples)} samples in {os.path.basename(path)}", file=sys.stderr)


def main(record, begin, answer):
    """The three modes of a driver: `record FILE`, `begin KEY`, `answer KEY`."""
    usage = "usage: drive.py record FILE | begin KEY | answer KEY"
    if len(sys.argv) != 3 or sys.argv[1] not in ("record", "begin", "answer"):
        sys.exit(usage)
    mode, what = sys.argv[1:]
    if mode == "record":
        record(what)
    else:
        print(json.dumps({"begin": begin, "answer": answer}[mode](what), ensure_ascii=False))

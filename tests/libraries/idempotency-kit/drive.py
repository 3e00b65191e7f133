"""Drives idempotency-kit with its Redis repository, and records what the library writes and answers.

    drive.py record FILE   every state, into FILE
    drive.py begin KEY     takes the key and leaves the record in progress, as a killed process does
    drive.py answer KEY    what a request with the key gets now
"""

import asyncio
import logging
import os
import time

from redis.asyncio import Redis

from idempotency_kit import (
    AsyncIdempotencyCoordinator,
    IdempotencyDomainService,
    IdempotencyError,
    IdempotencyInProgressError,
    IdempotencyKeyReuseError,
    JsonResultAdapter,
    VoidResultAdapter,
    fingerprint_of,
)
from idempotency_kit.infra.storage.redis.aio import RedisAsyncIdempotencyRepository

from recorder import Recorder, connect, main, outcome, refusal

logging.disable(logging.CRITICAL)

HEADER = {
    "library": "idempotency-kit",
    "version": "0.5.0",
    "registry": "PyPI",
    "source": "https://pypi.org/project/idempotency-kit/0.5.0/",
    "schema": "idempotency-kit",
}
MOMENTS = {"created_at": "rfc3339", "expires_at": "rfc3339"}
LEASE = 30_000
HOUR = 3_600_000
RAN = []


def run(key, work, amount=1, prefix=None, adapter=None, ttl=None, fingerprint=True, **options):
    """Calls an operation under the library, in a loop and with a connection of its own."""

    async def call():
        client = Redis(unix_socket_path=os.environ["IDEMCTL_LIBRARY_SOCKET"])
        repository = RedisAsyncIdempotencyRepository(client, **({"key_prefix": prefix} if prefix else {}))
        coordinator = AsyncIdempotencyCoordinator(repository, IdempotencyDomainService(), **options)

        async def action():
            RAN.append(key)
            return work()

        more = {"idempotency_fingerprint": fingerprint_of(amount=amount)} if fingerprint else {}
        try:
            return await coordinator.coordinate("payment.create", key, ttl, adapter or JsonResultAdapter(), action, **more)
        finally:
            await client.aclose()

    return asyncio.run(call())


def ask(key, **options):
    """What a request gets, in the words of the fixtures. A second caller does not wait, unless `in_flight` says so."""
    try:
        return outcome(lambda: run(key, lambda: {"id": 2}, **{"in_flight": "raise", **options}), RAN)
    except IdempotencyInProgressError as error:
        return refusal("conflict", error)
    except IdempotencyKeyReuseError as error:
        return refusal("mismatch", error)
    except IdempotencyError as error:
        return refusal("error", error)


def questions(key, **options):
    return {"same": lambda: ask(key, **options), "other": lambda: ask(key, **{**options, "amount": 2})}


def in_progress(recorder, key, **options):
    """The snapshot that is taken while the action runs."""
    seen = []
    run(key, lambda: seen.append(recorder.snapshot()), **options)
    recorder.client.flushall()
    return seen[0]


def record_locks(recorder):
    shapes = [
        ("in-progress", "an action at work", {}, {}),
        ("in-progress-no-fingerprint", "an action at work whose caller says nothing of the request", {"fingerprint": False}, {}),
        ("in-progress-prefix", "a key_prefix of the deployment's own", {"prefix": "shop:idem:"}, {}),
        ("in-progress-long-lease", "in_flight_lease_seconds = 600", {"in_flight_lease_seconds": 600}, {}),
        ("in-progress-wait", "second callers wait, by default, as long as a lease; here the lease of the caller is 1 s", {}, {"in_flight": "wait", "in_flight_lease_seconds": 1}),
        ("in-progress-run", "a deployment with in_flight = run: the record is another deployment's", {}, {"in_flight": "run"}),
    ]
    for name, about, options, asking in shapes:
        key = f"pay-{name}"
        seen = in_progress(recorder, key, **options)
        more = {"prefix": options["prefix"]} if "prefix" in options else {}
        ttl = options.get("in_flight_lease_seconds", 30) * 1000
        recorder.sample(name, about, key, seen, questions(key, **{**options, **asking}), ttl, MOMENTS, **more)

    # The lease is over, but the Redis key is not: what the library makes of the field, apart from the TTL.
    key = "pay-lease-over"
    seen = in_progress(recorder, key, in_flight_lease_seconds=1)
    redis_key = next(iter(seen["keys"]))
    seen["keys"][redis_key] = (seen["keys"][redis_key][0], -1)
    time.sleep(1.1)
    recorder.sample("in-progress-past", "a lease that is over; PERSIST by hand kept the Redis key", key, seen, questions(key), 1000, MOMENTS)


def record_results(recorder):
    bodies = {
        "object": ({"id": 1, "message": "über ✓"}, {}),
        "list": ([1, 2.5, "x"], {}),
        "text": ("done", {}),
        "null": (None, {}),
        "void": (None, {"adapter": VoidResultAdapter()}),
        "no-fingerprint": ({"id": 1}, {"fingerprint": False}),
        "short": ({"id": 1}, {"ttl": 60}),
    }
    for kind, (value, options) in bodies.items():
        key = f"pay-done-{kind}"
        run(key, lambda value=value: value, **options)
        seen = recorder.snapshot()
        recorder.client.flushall()
        ttl = options.get("ttl", 3600) * 1000
        recorder.sample(f"completed-{kind}", "a stored result", key, seen, questions(key, **options), ttl, MOMENTS)


def record_odd(recorder):
    key = "pay-odd"
    redis_key = f"idempotency:payment.create:{key}"
    old = '{"operation":"payment.create","idempotency_key":"pay-odd","result":{"id":1},"created_at":"2026-01-01T00:00:00Z","expires_at":"2099-01-01T00:00:00Z"}'
    by_hand = [
        ("not-json", "text that another program wrote", lambda: recorder.client.set(redis_key, "not JSON", ex=3600)),
        ("wrong-type", "a hash that another program wrote", lambda: recorder.client.hset(redis_key, "status", "completed")),
        ("no-status", "a record of a release before the field status, written by hand", lambda: recorder.client.set(redis_key, old, ex=3600)),
        ("unknown-status", "a status that the library does not know, written by hand", lambda: recorder.client.set(redis_key, old[:-1] + ',"status":"done"}', ex=3600)),
    ]
    for name, about, write in by_hand:
        write()
        recorder.sample(name, about, key, recorder.snapshot(), questions(key))
    try:
        run("pay-failed", lambda: 1 / 0)
    except ZeroDivisionError:
        pass
    recorder.sample("failed", "the action raised: the library removed the record", "pay-failed", recorder.snapshot(), questions("pay-failed"))


def record(path):
    recorder = Recorder(connect(), HEADER)
    record_locks(recorder)
    record_results(recorder)
    record_odd(recorder)
    recorder.write(path)


def begin(key):
    """The process ends while the action runs, so nothing is released. Standard output is written by `main` no more."""
    run(key, lambda: (print(f'{{"key": "{key}"}}', flush=True), os._exit(0)))


main(record, begin, ask)

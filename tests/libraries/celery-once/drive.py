"""Drives celery-once with its Redis backend, and records what the library writes and answers.

    drive.py record FILE   every state, into FILE
    drive.py begin KEY     queues the task with the argument order=KEY and leaves the task in the queue
    drive.py answer KEY    what queueing the task with the argument order=KEY gets now

The broker is Celery's in memory: the library keeps its locks in Redis whatever the broker is.
"""

import os

from celery import Celery

from celery_once import AlreadyQueued, QueueOnce

from recorder import Recorder, connect, main, refusal

HEADER = {
    "library": "celery-once",
    "version": "3.0.1",
    "registry": "PyPI",
    "source": "https://github.com/cameronmaske/celery-once",
    "schema": "celery-once",
}
HOUR = 3_600_000

app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.ONCE = {
    "backend": "celery_once.backends.Redis",
    "settings": {"url": f"redis+socket://{os.environ.get('IDEMCTL_LIBRARY_SOCKET', '')}", "default_timeout": 3600},
}


@app.task(base=QueueOnce, name="tasks.pay")
def pay(order):
    return {"paid": order}


@app.task(base=QueueOnce, name="tasks.settle", once={"keys": ["account"]})
def settle(account, day):
    return day


@app.task(base=QueueOnce, name="tasks.ship", once={"graceful": True})
def ship(order, lines):
    return order


@app.task(base=QueueOnce, name="tasks.fail")
def fail(order):
    raise ValueError(order)


@app.task(base=QueueOnce, name="tasks.report", once={"unlock_before_run": True})
def report(order):
    return order


def ask(task, **arguments):
    """What queueing a task gets, in the words of the fixtures."""
    try:
        result = task.apply_async(kwargs=arguments)
    except AlreadyQueued as error:
        return {"answer": "conflict", "text": f"AlreadyQueued: {error.message}"}
    except Exception as error:  # whatever else the library raises reaches the one who queues
        return refusal("error", error)
    rejected = result.state == "REJECTED"
    return {"answer": "conflict" if rejected else "executed", "text": f"{type(result).__name__} {result.state}"}


def record_locks(recorder):
    shapes = [
        ("in-progress", "a task in the queue, or at work", pay, {"order": 17}, {"order": 18}, {}),
        ("in-progress-text", "an argument with characters that mean something in Redis keys", pay, {"order": "a:b*c_d-é"}, None, {}),
        ("in-progress-nested", "nested arguments, and a task that refuses in silence", ship, {"order": 3, "lines": {"sku": ["x", 2]}}, None, {}),
        ("in-progress-restricted", "a task whose key has one of its two arguments", settle, {"account": "acc-7", "day": "2026-11-22"}, {"account": "acc-7", "day": "2026-11-23"}, {}),
        ("in-progress-short", "once = {timeout: 60}", pay, {"order": 19}, None, {"once": {"timeout": 60}}),
    ]
    for name, about, task, arguments, other, options in shapes:
        task.apply_async(kwargs=arguments, **options)
        seen = recorder.snapshot()
        recorder.client.flushall()
        asked = {"same": lambda task=task, arguments=arguments: ask(task, **arguments)}
        if other:
            asked["other"] = lambda task=task, other=other: ask(task, **other)
        ttl = options.get("once", {}).get("timeout", 3600) * 1000
        recorder.sample(name, about, task.get_key(kwargs=arguments), seen, asked, ttl)


def record_ends(recorder):
    """A task that ran leaves nothing, whether the task returned or raised; `apply` runs the task here."""
    ends = [
        ("completed", "the task returned: the library removed the lock and keeps no result", pay),
        ("failed", "the task raised: the library removed the lock", fail),
        ("unlocked-before-run", "unlock_before_run: no lock while the task works", report),
    ]
    for name, about, task in ends:
        task.apply_async(kwargs={"order": 20})
        task.apply(kwargs={"order": 20})
        key = task.get_key(kwargs={"order": 20})
        recorder.sample(name, about, key, recorder.snapshot(), {"same": lambda task=task: ask(task, order=20)})


def record_odd(recorder):
    key = "qo_tasks.pay_order-21"
    recorder.client.set(key, "c0ffee", px=HOUR)
    recorder.sample("other-text", "a text that another program wrote", key, recorder.snapshot(), {"same": lambda: ask(pay, order=21)})
    recorder.client.set(key, "0" * 32)
    recorder.sample("no-expiry", "a lock that PERSIST by hand made last", key, recorder.snapshot(), {"same": lambda: ask(pay, order=21)})
    recorder.client.delete(key)
    recorder.client.hset(key, "order", 21)
    recorder.sample("wrong-type", "a hash that another program wrote", key, recorder.snapshot(), {"same": lambda: ask(pay, order=21)})


def record(path):
    recorder = Recorder(connect(), HEADER)
    record_locks(recorder)
    record_ends(recorder)
    record_odd(recorder)
    recorder.write(path)


def begin(key):
    pay.apply_async(kwargs={"order": key})
    return {"key": key}


main(record, begin, lambda key: ask(pay, order=key))

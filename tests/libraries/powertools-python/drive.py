"""Drives aws-lambda-powertools (Python) with its cache persistence layer, and records what the library writes and answers.

    drive.py record FILE   every state, into FILE
    drive.py begin KEY     takes the key and leaves the record in progress, as a killed function does
    drive.py answer KEY    what a request with the key gets now
"""

import os
import time
import warnings

os.environ["POWERTOOLS_TRACE_DISABLED"] = "1"
os.environ["AWS_LAMBDA_FUNCTION_NAME"] = "payments-prod"

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyValidationError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

from recorder import Recorder, connect, main, outcome, refusal

warnings.simplefilter("ignore")

HEADER = {
    "library": "aws-lambda-powertools",
    "version": "3.37.0",
    "registry": "PyPI",
    "source": "https://github.com/aws-powertools/powertools-lambda-python",
    "schema": "powertools-python",
}
MOMENTS = {"expiration": "s", "in_progress_expiration": "ms"}
HOUR = 3_600_000
RAN = []


class Left:
    """The Lambda context, of which the library asks the time that is left."""

    def __init__(self, millis):
        self.millis = millis

    def get_remaining_time_in_millis(self):
        return self.millis


def service(client, work, left=600_000, validate=None, ttl=3600, prefix=None, **attributes):
    """A handler under the library; `left` is the remaining time in milliseconds, None where no context is registered."""
    config = IdempotencyConfig(event_key_jmespath="id", payload_validation_jmespath=validate or "", expires_after_seconds=ttl)
    if left is not None:
        config.register_lambda_context(Left(left))
    layer = CachePersistenceLayer(client=client, **attributes)

    def pay(event):
        RAN.append(event)
        return work(event)

    # The names stand in the Redis key: those of a function in a file app.py.
    pay.__module__, pay.__qualname__ = "app", "pay"
    wrap = idempotent_function(data_keyword_argument="event", config=config, persistence_store=layer, key_prefix=prefix)
    return wrap(pay)


def ask(pay, event):
    """What a request gets, in the words of the fixtures."""
    try:
        return outcome(lambda: pay(event=event), RAN)
    except IdempotencyAlreadyInProgressError as error:
        return refusal("conflict", error)
    except IdempotencyValidationError as error:
        return refusal("mismatch", error)
    except Exception as error:  # whatever else the library raises reaches the function's caller
        return refusal("error", error)


def in_progress(recorder, pay_with, event):
    """The snapshot that is taken while the handler runs."""
    seen = []
    pay_with(lambda _: seen.append(recorder.snapshot()))(event=event)
    recorder.client.flushall()
    return seen[0]


def completed(recorder, pay_with, event, value):
    pay_with(lambda _: value)(event=event)
    seen = recorder.snapshot()
    recorder.client.flushall()
    return seen


def questions(client, event, other=None, **options):
    """The same request again, and, where payloads are compared, one with another payload."""
    pay = service(client, lambda _: {"statusCode": 201}, **options)
    asked = {"same": lambda: ask(pay, event)}
    if other:
        asked["other"] = lambda: ask(pay, other)
    return asked


def record_locks(recorder):
    client = recorder.client
    shapes = [
        ("in-progress", "a function at work, with its remaining time", {}),
        ("in-progress-no-context", "a function at work that registered no Lambda context", {"left": None}),
        ("in-progress-validation", "a function at work, the payload's hash kept", {"validate": "amount"}),
        ("in-progress-prefix", "a key_prefix of the deployment's own, in place of the function's name", {"prefix": "shop/eu"}),
        ("in-progress-short", "expires_after_seconds = 120", {"ttl": 120}),
    ]
    for name, about, options in shapes:
        key = f"pay-{name}"
        event = {"id": key, "amount": 1}
        seen = in_progress(recorder, lambda work, options=options: service(client, work, **options), event)
        other = {"id": key, "amount": 2} if "validate" in options else None
        ttl = options.get("ttl", 3600) * 1000
        recorder.sample(name, about, key, seen, questions(client, event, other, **options), ttl, MOMENTS)


def record_orphans(recorder):
    client = recorder.client
    event = {"id": "pay-orphan", "amount": 1}
    seen = in_progress(recorder, lambda work: service(client, work, left=1), event)
    time.sleep(0.05)
    recorder.sample("orphan", "the function's time is over, the record is not", "pay-orphan", seen, questions(client, event), HOUR, MOMENTS)

    # The library reclaims the orphan and leaves `<key>:lock` beside the record on purpose.
    recorder.put_back(seen)
    reclaimed = []
    service(client, lambda _: reclaimed.append(recorder.snapshot()))(event=event)
    client.flushall()
    recorder.sample("reclaimed", "an orphan that another function has taken over", "pay-orphan", reclaimed[0], questions(client, event), HOUR, MOMENTS)

    recorder.put_back(seen)
    client.set(next(iter(seen["keys"])) + b":lock", "True", ex=10)
    seen = recorder.snapshot()
    recorder.sample("orphan-being-reclaimed", "an orphan whose lock another function holds", "pay-orphan", seen, questions(client, event), HOUR, MOMENTS)


def record_results(recorder):
    client = recorder.client
    bodies = {
        "object": {"payment_id": 17, "message": "über ✓", "statusCode": 200},
        "list": [1, 2.5, "x"],
        "text": "done",
        "number": 7,
        "empty-object": {},
        "null": None,
    }
    for kind, value in bodies.items():
        key = f"pay-done-{kind}"
        event = {"id": key, "amount": 1}
        seen = completed(recorder, lambda work: service(client, work), event, value)
        recorder.sample(f"completed-{kind}", "a stored result", key, seen, questions(client, event), HOUR, MOMENTS)
    event = {"id": "pay-done-validation", "amount": 1}
    options = {"validate": "amount"}
    seen = completed(recorder, lambda work: service(client, work, **options), event, {"ok": True})
    asked = questions(client, event, {**event, "amount": 2}, **options)
    recorder.sample("completed-validation", "a stored result of a deployment that compares payloads", event["id"], seen, asked, HOUR, MOMENTS)


def record_odd(recorder):
    client = recorder.client
    event = {"id": "pay-past", "amount": 1}
    seen = completed(recorder, lambda work: service(client, work, ttl=1), event, {"ok": True})
    key = next(iter(seen["keys"]))
    seen["keys"][key] = (seen["keys"][key][0], -1)
    time.sleep(2.1)
    recorder.sample("completed-past", "a result past its own expiration; PERSIST by hand kept the Redis key", event["id"], seen, questions(client, event), 1000, MOMENTS)

    attributes = {"status_attr": "s", "expiry_attr": "e", "in_progress_expiry_attr": "ipe", "data_attr": "d"}
    event = {"id": "pay-attributes", "amount": 1}
    seen = completed(recorder, lambda work: service(client, work, **attributes), event, {"ok": True})
    recorder.sample("completed-attributes", "attribute names of the deployment's own", event["id"], seen, questions(client, event, **attributes), HOUR, {"e": "s"})

    client.set(key, "not JSON", ex=3600)
    event = {"id": "pay-past", "amount": 1}
    recorder.sample("not-json", "text that another program wrote", event["id"], recorder.snapshot(), questions(client, event))
    client.hset(key, "status", "COMPLETED")
    recorder.sample("wrong-type", "a hash that another program wrote", event["id"], recorder.snapshot(), questions(client, event))
    client.set(key, '{"status":"COMPLETED"}', ex=3600)
    recorder.sample("no-expiration", "a record without its expiration, written by hand", event["id"], recorder.snapshot(), questions(client, event))
    client.set(key, '{"status":"PENDING","expiration":9999999999}', ex=3600)
    recorder.sample("unknown-status", "a status that the library does not know, written by hand", event["id"], recorder.snapshot(), questions(client, event))

    event = {"id": "pay-failed", "amount": 1}
    try:
        service(client, lambda _: 1 / 0)(event=event)
    except ZeroDivisionError:
        pass
    recorder.sample("failed", "the handler raised: the library removed the record", event["id"], recorder.snapshot(), questions(client, event))


def record(path):
    recorder = Recorder(connect(), HEADER)
    record_locks(recorder)
    record_orphans(recorder)
    record_results(recorder)
    record_odd(recorder)
    recorder.write(path)


class Killed(BaseException):
    """The function dies: the library removes nothing for what is no Exception."""


def begin(key):
    client = connect()

    def die(_):
        raise Killed

    try:
        service(client, die)(event={"id": key, "amount": 1})
    except Killed:
        pass
    return {"key": key}


def answer(key):
    return ask(service(connect(), lambda _: {"statusCode": 201}), {"id": key, "amount": 1})


main(record, begin, answer)

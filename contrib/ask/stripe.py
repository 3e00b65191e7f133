#!/usr/bin/env python3
"""Answers `idemctl reconcile --ask ./stripe.py` from Stripe.

Looks for the PaymentIntent whose metadata holds the idempotency key, as
    stripe.PaymentIntent.create(..., metadata={"idempotency_key": key})
stores it. Stripe cannot be searched for the Idempotency-Key header itself.

STRIPE_API_KEY   a restricted key that may read PaymentIntents (required)
STRIPE_METADATA  the name of the metadata field [idempotency_key]
STRIPE_API_BASE  the address of the API [https://api.stripe.com]
STRIPE_FRESH     seconds until the search finds everything [7200]

Sources: https://docs.stripe.com/api/payment_intents/search (pages by `next_page`; "Don't use search in read-after-write
flows"; data is searchable in less than a minute, up to an hour behind during outages), https://docs.stripe.com/search
(query language) and https://docs.stripe.com/payments/paymentintents/lifecycle (statuses). Therefore "not found" is
`not-done` only for an operation that began longer ago than STRIPE_FRESH, and else `unknown`.

Change `response` to what your service sends to its clients.
"""

import datetime
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

MAX_PAGES = 20


def response(intent):
    """What your service answers to its client for this PaymentIntent."""
    return {
        "status": 201,
        "headers": {"Content-Type": "application/json"},
        "body": {"id": intent["id"], "status": intent["status"]},
    }


def search(field, key):
    """All PaymentIntents whose metadata field is exactly the key."""
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    query = {"query": f'metadata["{field}"]:"{quoted}"', "limit": "100"}
    base = os.environ.get("STRIPE_API_BASE", "https://api.stripe.com")
    found = []
    for _ in range(MAX_PAGES):
        url = f"{base}/v1/payment_intents/search?{urllib.parse.urlencode(query)}"
        headers = {"Authorization": f"Bearer {os.environ['STRIPE_API_KEY']}"}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as reply:
            page = json.load(reply)
        for intent in page["data"]:
            # The search ignores case, and two keys may differ by it.
            if intent.get("metadata", {}).get(field) == key:
                found.append(intent)
        if not page.get("has_more"):
            return found
        query["page"] = page["next_page"]
    raise ValueError(f"more than {MAX_PAGES} pages")


def age_seconds(created_at):
    if created_at is None:
        return None
    then = datetime.datetime.fromisoformat(created_at.replace("Z", "+00:00"))
    return (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()


def answer(question):
    found = search(os.environ.get("STRIPE_METADATA", "idempotency_key"), question["key"])
    succeeded = [intent for intent in found if intent["status"] == "succeeded"]
    if len(succeeded) == 1:
        return {"outcome": "done", **response(succeeded[0])}
    if len(succeeded) > 1:
        return {"outcome": "unknown", "reason": f"{len(succeeded)} PaymentIntents succeeded"}
    open_ones = [intent for intent in found if intent["status"] != "canceled"]
    if open_ones:
        # It may still succeed, for example after 3-D Secure or a capture.
        return {"outcome": "unknown", "reason": f"{open_ones[0]['id']} is {open_ones[0]['status']}"}
    age = age_seconds(question.get("created_at"))
    if age is None:
        return {"outcome": "unknown", "reason": "not found, and nobody knows when it began"}
    if age < float(os.environ.get("STRIPE_FRESH", "7200")):
        return {"outcome": "unknown", "reason": "not found yet; the search may be behind"}
    return {"outcome": "not-done"}


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (OSError, KeyError, ValueError) as error:
        # The URL of an error may hold the key, but never the password.
        sys.exit(f"stripe.py: {type(error).__name__}: {error}")

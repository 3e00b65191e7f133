#!/usr/bin/env python3
"""Answers `idemctl reconcile --ask './sql.py payments.db'` from the service's own database.

For services that write the effect and the idempotency key in one transaction, for example an order with its key in a
unique column. Then the row tells for certain whether the operation took effect, if its transaction has ended. This
example reads sqlite; with another database, change `rows`.

A transaction that is still open shows no row, and may yet commit. Therefore "no row" is `not-done` only for an
operation that began longer ago than SQL_FRESH seconds [3600], longer than any transaction may take. Source:
https://www.sqlite.org/isolation.html (a reader does not see changes before they are committed).
"""

import datetime
import json
import os
import sqlite3
import sys

QUERY = "SELECT id, status, body FROM orders WHERE idempotency_key = ?"


def rows(database, key):
    # Read-only, so that a wrong path does not create an empty database.
    path = os.path.abspath(database)
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(QUERY, (key,)).fetchall()
    finally:
        connection.close()


def answer(database, question):
    found = rows(database, question["key"])
    if len(found) > 1:
        return {"outcome": "unknown", "reason": f"{len(found)} rows have this key"}
    if found:
        _, status, body = found[0]
        headers = {"Content-Type": "application/json"}
        return {"outcome": "done", "status": status, "headers": headers, "body": json.loads(body)}
    created_at = question.get("created_at")
    if created_at is None:
        return {"outcome": "unknown", "reason": "no row, and nobody knows when it began"}
    then = datetime.datetime.fromisoformat(created_at.replace("Z", "+00:00"))
    age = (datetime.datetime.now(datetime.timezone.utc) - then).total_seconds()
    if age < float(os.environ.get("SQL_FRESH", "3600")):
        return {"outcome": "unknown", "reason": "no row yet; its transaction may be open"}
    return {"outcome": "not-done"}


if __name__ == "__main__":
    try:
        print(json.dumps(answer(sys.argv[1], json.load(sys.stdin))))
    except (OSError, KeyError, IndexError, ValueError, sqlite3.Error) as error:
        sys.exit(f"sql.py: {type(error).__name__}: {error}")

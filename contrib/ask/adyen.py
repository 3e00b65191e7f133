#!/usr/bin/env python3
"""Answers `idemctl reconcile --ask ./adyen.py` from Adyen's daily reports.

Adyen has no call that finds a payment by its merchant reference, but its payment accounting report has it. This program
downloads the reports of the day on which the operation began and of the next day, and looks for the idempotency key as
the merchant reference, as
    payments.create({..., "reference": key})
sends it. Adyen generates a day's report after that day has ended, so this fits locks that are older than a day or two.

ADYEN_REPORT_USER, ADYEN_REPORT_PASSWORD  the report user (required)
ADYEN_MERCHANT  the merchant account (required)
ADYEN_BASE      the address of the reports [https://ca-live.adyen.com]

Sources: https://docs.adyen.com/reporting/invoice-reconciliation/payment-accounting-report (columns `Merchant Reference`,
`Psp Reference`, `Record Type`; time zone of the account) and https://docs.adyen.com/reporting/automatically-get-reports
(download from /reports/download/MerchantAccount/…). A reference that is in neither report was never received, which is
`not-done`. If a report is not there yet, the answer is `unknown`.

Change `response` to what your service sends to its clients.
"""

import base64
import csv
import datetime
import io
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

# The payment took effect for the shopper. Capture and settlement follow.
DONE = {"Authorised", "SentForSettle", "Settled"}
# The payment ended without effect.
NOT_DONE = {"Refused", "Error", "Cancelled", "Expired"}


def response(psp_reference):
    """What your service answers to its client for this payment."""
    return {
        "status": 201,
        "headers": {"Content-Type": "application/json"},
        "body": {"pspReference": psp_reference, "resultCode": "Authorised"},
    }


def report(day):
    """The rows of the report of a day; None if it is not there yet."""
    base = os.environ.get("ADYEN_BASE", "https://ca-live.adyen.com")
    merchant = urllib.parse.quote(os.environ["ADYEN_MERCHANT"], safe="")
    name = f"payments_accounting_report_{day:%Y_%m_%d}.csv"
    login = f"{os.environ['ADYEN_REPORT_USER']}:{os.environ['ADYEN_REPORT_PASSWORD']}"
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
    url = f"{base}/reports/download/MerchantAccount/{merchant}/{name}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=25) as reply:
            text = reply.read().decode("utf-8-sig")
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise
    return list(csv.DictReader(io.StringIO(text)))


def answer(question):
    if question.get("created_at") is None:
        return {"outcome": "unknown", "reason": "nobody knows on which day it began"}
    began = datetime.datetime.fromisoformat(question["created_at"].replace("Z", "+00:00")).date()
    # The account may have another time zone, so the operation may be in the report of the day before.
    days = [began + datetime.timedelta(days=by) for by in (-1, 0, 1)]
    types, references, missing = set(), set(), []
    for day in days:
        rows = report(day)
        if rows is None:
            missing.append(str(day))
            continue
        for row in rows:
            if row["Merchant Reference"] == question["key"]:
                types.add(row["Record Type"])
                references.add(row["Psp Reference"])
    if len(references) > 1:
        return {"outcome": "unknown", "reason": f"{len(references)} payments have this reference"}
    if types & DONE and not types & NOT_DONE:
        return {"outcome": "done", **response(references.pop())}
    if missing:
        return {"outcome": "unknown", "reason": f"there is no report of {', '.join(missing)} yet"}
    if types & DONE:
        return {"outcome": "unknown", "reason": f"it was {', '.join(sorted(types))}"}
    if types - NOT_DONE - {"Received"}:
        return {"outcome": "unknown", "reason": f"it is {', '.join(sorted(types))}"}
    if types == {"Received"}:
        return {"outcome": "unknown", "reason": "it was received, and nothing more is known"}
    return {"outcome": "not-done"}


if __name__ == "__main__":
    try:
        print(json.dumps(answer(json.load(sys.stdin))))
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"adyen.py: {type(error).__name__}: {error}")

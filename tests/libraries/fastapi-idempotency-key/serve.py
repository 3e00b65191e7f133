"""A payment service with fastapi-idempotency-key and its Redis backend, as its README shows it.

serve.py PORT     with the server's socket in IDEMCTL_LIBRARY_SOCKET
"""

import asyncio
import os
import sys

import uvicorn
from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import PlainTextResponse
from fastapi_idempotency_key import IdempotencyMiddleware, RedisBackend
from redis.asyncio import Redis

redis = Redis(unix_socket_path=os.environ["IDEMCTL_LIBRARY_SOCKET"])
app = FastAPI()
app.add_middleware(IdempotencyMiddleware, backend=RedisBackend(redis=redis), required=True)
payments = 0


@app.get("/effects", response_class=PlainTextResponse)
async def effects():
    return str(payments)


@app.post("/payments", status_code=201)
async def pay(payment: dict, response: Response):
    global payments
    if payment["amount"] <= 0:
        raise HTTPException(400, "the amount is not above 0")
    await asyncio.sleep(0.2)
    payments += 1
    response.headers["Location"] = f"/payments/pay_{payments}"
    return {"id": f"pay_{payments}", "order": payment["order"], "amount": payment["amount"]}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")

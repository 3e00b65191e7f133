"""A payment service with asgi-idempotency-header and its Redis backend, as its README shows it.

serve.py PORT     with the server's socket in IDEMCTL_LIBRARY_SOCKET
"""

import asyncio
import os
import sys

import uvicorn
from fastapi import FastAPI, HTTPException, Response
from fastapi.responses import PlainTextResponse
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import RedisBackend
from redis.asyncio import Redis

redis = Redis(unix_socket_path=os.environ["IDEMCTL_LIBRARY_SOCKET"])
app = FastAPI()
app.add_middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis=redis))
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

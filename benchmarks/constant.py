"""The server to which `pumice webhook` is compared: aiohttp, as a separate process, answers a constant over TLS.

    python benchmarks/constant.py FOLDER

The folder has the certificate, tls.crt and tls.key. The address is printed to standard error.
"""

import asyncio
import ssl
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from benchmarks.questions import CONSTANT

ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}}'


async def serve(folder: Path) -> None:
    """Serve until the process ends."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=ANSWER, content_type="application/json")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    app = web.Application()
    app.router.add_post(CONSTANT, answer)
    app.router.add_get("/readyz", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    print(f"https://127.0.0.1:{runner.addresses[0][1]}", file=sys.stderr, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))

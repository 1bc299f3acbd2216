"""A webhook replica as a process of its own, with certificates that last seconds.

The command has no flags for such durations, and needs none. Run as `python replica.py JSON` with the
fields of `Orders`; each review is answered over a connection of its own, so that each is a handshake.
"""

import asyncio
import json
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from pumice.certs.keeper import CertificateManager
from pumice.certs.rotation import CertSettings
from pumice.cluster.client import Client
from pumice.cluster.lifecycle import run_until_stopped
from pumice.plugins import builtin
from pumice.webhook.server import KeptCertificates, ServerSettings, StateSource, WebhookWorker
from pumice.webhook.settings import AdmissionSettings


@dataclass
class Orders:
    """What a replica is told.

    Attributes:
        kubeconfig: Who it is.
        port: Where it answers reviews.
        metrics_port: Where it answers probes, over plain HTTP.
        certificates: Fields of `CertSettings`.
    """

    kubeconfig: str
    port: int
    metrics_port: int
    certificates: dict[str, Any] = field(default_factory=dict)


async def closing(response: web.StreamResponse, request: web.BaseRequest) -> object:
    """What becomes of `web.StreamResponse.prepare`: the answer says that it was the last one."""
    response.force_close()
    return await prepare(response, request)


prepare = web.StreamResponse.prepare


async def main(orders: Orders) -> None:
    async with Client.connect(Path(orders.kubeconfig)) as client:
        certificates = KeptCertificates(
            CertificateManager(client, CertSettings(**orders.certificates))
        )
        listening = ServerSettings(
            port=orders.port, metrics_port=orders.metrics_port, drain_seconds=0.0
        )
        worker = WebhookWorker(
            StateSource.of_cluster(client), builtin(), AdmissionSettings(), listening, certificates
        )
        await run_until_stopped(worker.tasks())


if __name__ == "__main__":
    web.StreamResponse.prepare = closing  # type: ignore[method-assign, assignment]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main(Orders(**json.loads(sys.argv[1]))))

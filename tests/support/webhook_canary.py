"""Waiting until an API server has taken note of webhook configurations, of which it learns by a watch.

A configuration about one ConfigMap is created after those that are waited for, so the watch shows it after them. Nothing answers at
its URL: once it is in effect, the ConfigMap is refused.
"""

import asyncio
import secrets
from typing import Any

from pumice.api.kinds import CONFIG_MAP, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.kit.waiting import until
from tests.support.ports import free_port

Raw = dict[str, Any]


async def until_known(api: Client) -> None:
    """Wait until the API server knows all webhook configurations as they are now."""
    await asyncio.gather(*(_known(api, kind) for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)))


async def _known(api: Client, kind: Kind) -> None:
    name = f"canary-{secrets.token_hex(4)}"
    await api.create(kind, _configuration(kind, name))

    async def is_refused() -> bool:
        body = {**CONFIG_MAP.type_meta, "metadata": {"name": name}}
        try:
            await api.create(CONFIG_MAP, body, "default", dry_run=True)
        except ApiError as error:
            return f'failed calling webhook "{name}.pumice.dev"' in error.message
        return False

    try:
        await until(is_refused, "the API server to take note of webhook configurations")
    finally:
        await api.delete(kind, name)


def _configuration(kind: Kind, name: str) -> Raw:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": f"{name}.pumice.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "clientConfig": {"url": f"https://127.0.0.1:{free_port()}/"},
        "rules": [rule | {"operations": ["CREATE"]}],
        "matchConditions": [
            {"name": "canary", "expression": f"object.metadata.name == '{name}'"},
        ],
    }
    return {**kind.type_meta, "metadata": {"name": name}, "webhooks": [webhook]}

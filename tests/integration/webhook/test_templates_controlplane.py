"""Pod templates, judged by Pumice and by the real kube-apiserver: what the one refuses, so does the other.

Nothing is created: pods are sent as dry runs, many at a time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pumice.api import pods
from pumice.api.kinds import POD, PRIORITY_CLASS, SERVICE_ACCOUNT, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.unit.webhook.template_rows import judged, pod_of, template_rows
from tests.unit.webhook.template_shapes import GROUPS, templates
from tools.pod_types import table

Raw = dict[str, Any]

RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False)
EXAMPLES = 8
"""Templates drawn for each group of fields; there are some seventy groups."""

CLASS = "high.prio"
"""Name of the priority class and the runtime class that exist."""

AT_ONCE = 50
REFUSALS = {400, 403, 422}
"""Not decoded, refused by an admission plugin, refused by validation."""


class Judge:
    """The API server, asked about pods of one namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def refusals(self, wanted: Iterable[Raw]) -> list[str]:
        """Why a pod of each template is refused; empty where it is not."""
        return await asyncio.gather(*(self._refusal(template) for template in wanted))

    async def _refusal(self, template: Raw) -> str:
        body = json.dumps(pod_of(template)).encode()
        async with self._turns:
            try:
                await self._client.create(POD, body, self._namespace, dry_run=True)
            except ApiError as error:
                if error.status not in REFUSALS:
                    raise
                return error.message
        return ""


@pytest.fixture
async def judge(controlplane: ControlPlane, namespace: str) -> AsyncIterator[Judge]:
    """The API server, with the objects that the tables name."""
    account = {"metadata": {"name": "runner", "namespace": namespace}}
    classes = ((PRIORITY_CLASS, {"value": 1000}), (RUNTIME_CLASS, {"handler": "runsc"}))
    async with Client.connect(controlplane.kubeconfig) as client:
        await client.create(
            SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount"} | account
        )
        for kind, said in classes:
            head = {"apiVersion": kind.api_version, "kind": kind.kind}
            await client.create(kind, head | {"metadata": {"name": CLASS}} | said)
        judge = Judge(client, namespace)
        await _know(judge)
        yield judge
        for kind, _ in classes:
            await client.delete(kind, CLASS)


async def _know(judge: Judge) -> None:
    """Wait until admission has learned of the classes, which it does by watching."""
    spec = {"priorityClassName": CLASS, "runtimeClassName": CLASS, "serviceAccountName": "runner"}
    template = {"spec": spec | {"containers": [{"name": "main", "image": "busybox"}]}}
    refusals: list[str] = []

    async def known() -> bool:
        refusals[:] = await judge.refusals([template])
        return refusals == [""]

    await until(known, "the API server knows the classes", around=lambda: refusals)


async def test_both_say_the_same_of_every_row(judge: Judge) -> None:
    rows = list(template_rows())
    wrong = []
    for row, refusal in zip(rows, await judge.refusals(row.template for row in rows), strict=True):
        agrees = bool(refusal) is bool(row.judged().errors)
        if agrees is bool(row.disagrees):
            said = refusal or "accepted"
            wrong.append(f"{row.name}: {'no longer disagrees' if agrees else said}")
    assert wrong == []


async def test_both_say_the_same_of_templates_that_are_drawn(judge: Judge) -> None:
    drawn = [template for group in GROUPS for template in examples(group)]
    assert len(drawn) >= 200
    refusals = await judge.refusals(drawn)
    wrong = []
    for template, refusal in zip(drawn, refusals, strict=True):
        found = judged(template).errors
        if bool(refusal) is not bool(found):
            wrong.append((json.dumps(template), refusal, [str(each) for each in found]))
    assert wrong == []
    accepted = refusals.count("")
    assert len(drawn) * 0.2 < accepted < len(drawn) * 0.8


def examples(group: str) -> list[Raw]:
    """Templates of a group, the same ones every time."""
    found: list[Raw] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(templates(group))
    def draw(template: Raw) -> None:
        found.append(template)

    draw()
    return found


def test_the_table_of_types_is_what_the_api_server_serves(controlplane: ControlPlane) -> None:
    status, served = controlplane.request("GET", "/openapi/v2")
    assert status == 200
    file = Path(pods.__file__).with_name("pod_types.json")
    # When Kubernetes has moved on: `python -m tools.pod_types` writes the table again.
    assert file.read_text(encoding="utf-8") == table(served)

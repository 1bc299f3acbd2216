"""What admission lets in can be carried out: the real kube-apiserver takes all that is made of a Job.

Nothing is created: the Job, its objects, and the first and the last pod of each task are sent as dry runs.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pumice.api.kinds import PERSISTENT_VOLUME_CLAIM, of_object
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from pumice.controller.jobs import job_group, pods
from pumice.controller.jobs.subject import read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.objects import owned
from pumice.controller.render import NO_UID, without_keys
from pumice.plugins import Wiring, builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.integration.webhook.drawn_jobs import QUEUES, drawn_job
from tests.kit import builders
from tests.support.controlplane.cluster import ControlPlane

Raw = dict[str, Any]

DRAWN = 250
LEAST = 80
"""Jobs of those that are to be admitted, so that the test is about something."""
AT_ONCE = 50
ETCD_LIMIT = 1_500_000
"""Bytes of JSON, which is longer than what is stored; dry runs never reach etcd."""


@pytest.fixture
async def api(controlplane: ControlPlane) -> AsyncIterator[Client]:
    controlplane.establish()
    async with Client.connect(controlplane.kubeconfig) as client:
        yield client


def made_of(job: Raw) -> list[Raw]:
    """The Job as it is stored, and what its controller makes, but for pods between the first and the last."""
    job = json.loads(json.dumps(job))
    meta = job["metadata"]
    if "name" not in meta:
        meta["name"] = meta["generateName"][:58] + "2xbz9"
    meta["uid"] = NO_UID
    subject = read(job)
    wiring = Wiring(subject, builtin())
    ends = [
        pods.build(subject, task, index, wiring.pod, forwarding=True)
        for task in subject.tasks
        for index in sorted({0, task.size - 1})
        if task.size
    ]
    return [
        job,
        *owned(subject.metadata, [*wanted_claims(subject), *wiring.objects()]),
        *(without_keys(subject.metadata, each) for each in wiring.secrets()),
        job_group.wanted(subject, {}, (), wiring.job_annotations()),
        *ends,
    ]


async def refusals(api: Client, wanted: list[Raw]) -> list[str]:
    """Why objects are refused; nothing for those that are not."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def refusal(manifest: Raw) -> str:
        body = json.dumps(manifest).encode()
        kind = of_object(manifest) or PERSISTENT_VOLUME_CLAIM
        async with turns:
            try:
                await api.create(kind, body, manifest["metadata"]["namespace"], dry_run=True)
            except ApiError as error:
                return f"{kind.kind}: {error.message}"
        return f"{kind.kind} of {len(body)} bytes" if len(body) > ETCD_LIMIT else ""

    found = await asyncio.gather(*(refusal(each) for each in wanted))
    return [each for each in found if each]


async def test_all_that_is_made_of_an_admitted_job_is_accepted(api: Client, namespace: str) -> None:
    state = [builders.queue(each) for each in QUEUES]
    rules = Admission(AdmissionSettings(), Snapshot.of(state), builtin())
    admitted, wrong = 0, []
    for seed in range(DRAWN):
        found = judge(rules, drawn_job(seed, namespace))
        if found.allowed:
            admitted += 1
            wrong += [(seed, each) for each in await refusals(api, made_of(found.patched))]
    assert wrong == []
    assert admitted >= LEAST

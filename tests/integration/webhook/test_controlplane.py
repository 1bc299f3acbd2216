"""The webhook called by the real kube-apiserver, and what that does when nobody answers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.serving import Raw
from tests.integration.webhook.stage import JudgedNamespace, answering, forget
from tests.kit.builders import job, pod, pod_group, queue
from tests.support.controlplane.cluster import ControlPlane

NAMESPACE = "test-called"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def stage(controlplane: ControlPlane, namespace: str) -> JudgedNamespace:
    found = JudgedNamespace(controlplane, namespace)
    await found.establish()
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def called(controlplane: ControlPlane) -> AsyncIterator[JudgedNamespace]:
    """A stage whose webhook answers, for all tests that do not stop it."""
    controlplane.add_namespace(NAMESPACE)
    shared = JudgedNamespace(controlplane, NAMESPACE)
    await shared.establish()
    try:
        async with answering(shared, controlplane.kubeconfig):
            await asyncio.to_thread(controlplane.apply, queue("default", state=""))
            yield shared
    finally:
        await forget(shared)
        controlplane.remove_namespace(NAMESPACE)


def bare_job(namespace: str, name: str = "train", **spec: Any) -> Raw:
    manifest = job(name, namespace=namespace, **spec)
    del manifest["spec"]["tasks"][0]["name"]
    return manifest


async def test_a_job_is_judged_defaulted_and_applied_again(called: JudgedNamespace) -> None:
    bad = job(
        namespace=called.namespace,
        queue="reserch",
        plugins={"tensorflw": []},
        minAvailable=5,
        policies=[{"event": "PodFailed", "action": "RestartAll"}],
    )
    text = await called.refused("apply", "--dry-run=server", "-f", "-", obj=bad)
    for line in (
        "spec.minAvailable: job 'minAvailable' should not be greater than total replicas (1), found 5",
        "spec.policies[0].action:",
        'spec.plugins.tensorflw: unable to find job plugin "tensorflw" (did you mean "tensorflow"?)',
        'spec.queue: unable to find job queue "reserch": there is no such queue',
    ):
        assert line in text

    good = bare_job(called.namespace, plugins={"tensorflow": []})
    await called.kubectl("apply", "-f", "-", obj=good)
    stored = await called.get("vcjob", "train")
    spec = stored["spec"]
    assert (spec["minAvailable"], spec["schedulerName"]) == (1, "volcano")
    assert spec["tasks"][0]["name"] == "default0"
    assert spec["plugins"] == {"tensorflow": [], "svc": []}

    again = ("apply", "-f", "-"), ("apply", "--server-side", "--force-conflicts", "-f", "-")
    for arguments in (*again, ("replace", "-f", "-"), again[0]):
        await called.kubectl(*arguments, obj=good)
        found = await called.get("vcjob", "train")
        assert found["spec"] == spec, arguments
        assert found["metadata"]["generation"] == 1, arguments

    await called.kubectl("patch", "vcjob", "train", "--type=merge", "-p", '{"spec":{"queue":null}}')
    text = await called.refused(
        "patch", "vcjob", "train", "--type=merge", "-p", '{"spec":{"maxRetry":7}}'
    )
    assert (
        "spec.maxRetry: job updates may not change fields other than priorityClassName and counts, found 3 → 7"
        in text
    )


async def test_kubectl_prints_a_line_a_problem(called: JudgedNamespace) -> None:
    space = called.namespace
    one, two = job("one", namespace=space, queue="gone"), job("two", namespace=space, queue="gone")
    line = 'spec.queue: unable to find job queue "gone": there is no such queue [JOB-QUEUE-MISSING]'

    text = await called.refused("apply", "--dry-run=server", "-f", "-", obj=one)
    assert text.splitlines() == [f'The Job "one" is invalid: {line}']

    doubtful = job("one", namespace=space, queue="gone", minSuccess=9)
    text = await called.refused("apply", "--dry-run=server", "-f", "-", obj=doubtful)
    warning = (
        "spec.minSuccess: cannot be reached: it is greater than the replicas of all tasks (1), found 9 "
        "[JOB-MIN-SUCCESS]"
    )
    assert text.splitlines() == [f"Warning: {warning}", f'The Job "one" is invalid: {line}']

    # Of several objects kubectl prints the message of each, which must say whose it is.
    two["spec"]["minAvailable"] = 5
    both = {"apiVersion": "v1", "kind": "List", "items": [one, two]}
    text = await called.refused("create", "--dry-run=server", "-f", "-", obj=both)
    denied = 'admission webhook "validatejob.volcano.sh" denied the request: '
    first, second, *others = text.splitlines()
    assert first.endswith(f'{denied}Job "one": {line}')
    assert second.endswith(f'{denied}Job "two" has 2 problems:')
    assert others == [
        "spec.minAvailable: job 'minAvailable' should not be greater than total replicas (1), found 5 [JOB-MINAVAIL-TOTAL]",
        line,
    ]

    text = await called.refused("delete", "--dry-run=server", "queue.scheduling.volcano.sh/default")
    assert (
        'The Queue "default" is invalid: metadata.name: `default` queue can not be deleted' in text
    )
    assert "NotFound" in await called.kubectl("get", "vcjob", "one", check=False)


async def test_an_object_as_large_as_etcd_takes_is_judged(called: JudgedNamespace) -> None:
    """An update sends it twice."""
    large = bare_job(called.namespace, "large")
    container = large["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    container["args"] = ["x" * 100_000] * 14
    await called.kubectl("create", "-f", "-", obj=large)
    assert (await called.get("vcjob", "large"))["spec"]["tasks"][0]["name"] == "default0"
    large["spec"]["minAvailable"] = 5
    text = await called.refused("replace", "-f", "-", obj=large)
    assert "[JOB-MINAVAIL-TOTAL]" in text
    large["spec"]["minAvailable"] = 1
    large["metadata"]["labels"] = {"size": "large"}
    await called.kubectl("replace", "-f", "-", obj=large)
    assert (await called.get("vcjob", "large"))["metadata"]["labels"] == {"size": "large"}


async def test_more_warnings_than_the_api_server_passes_on(called: JudgedNamespace) -> None:
    # A line break would make the API server drop the warning.
    arguments = [f"--no-such-\n{number:03}{'x' * 400}" for number in range(60)]
    doubtful = job("doubtful", namespace=called.namespace, plugins={"svc": arguments})
    text = await called.kubectl("create", "--dry-run=server", "-f", "-", obj=doubtful)
    warnings = [each for each in text.splitlines() if each.startswith("Warning: ")]
    assert len(warnings) > 10
    assert all(each.endswith("… [JOB-PLUGIN-ARGUMENT]") for each in warnings[:-1])
    left = 60 - len(warnings) + 1
    assert warnings[-1] == f"Warning: and {left} more warnings, which `pumice lint` shows"


async def test_a_namespace_has_levels_of_its_own(
    controlplane: ControlPlane, stage: JudgedNamespace
) -> None:
    space = stage.namespace
    levels = AdmissionSettings.from_assignments(
        [
            "rule.JOB-QUEUE-MISSING=off",
            f"namespace.{space}.rule.JOB-QUEUE-MISSING=warn",
            f"namespace.{space}.rule.JOB-MIN-SUCCESS=enforce",
        ]
    )
    try:
        async with answering(stage, controlplane.kubeconfig, settings=levels):
            lax = job("lax", namespace=space, queue="gone")
            text = await stage.kubectl("create", "--dry-run=server", "-f", "-", obj=lax)
            assert "Warning: spec.queue" in text
            strict = job("strict", namespace=space, queue="gone", minSuccess=9)
            text = await stage.refused("create", "--dry-run=server", "-f", "-", obj=strict)
            assert "[JOB-MIN-SUCCESS]" in text
            assert 'The Job "strict" is invalid: spec.minSuccess' in text
    finally:
        await forget(stage)


async def test_queues_podgroups_and_pods_are_judged(called: JudgedNamespace) -> None:
    manifest = queue("lab", state="", guarantee={"resource": {"cpu": "1"}})
    text = await called.refused("apply", "-f", "-", obj=manifest)
    assert "spec.deserved.cpu: must be >= guarantee (1), found none" in text
    annotations = {"volcano.sh/hierarchy": "lab", "volcano.sh/hierarchy-weights": "2"}
    try:
        await called.kubectl(
            "apply", "-f", "-", obj=queue("lab", state="", annotations=annotations)
        )
        stored = await called.get("queue.scheduling.volcano.sh", "lab")
        assert stored["spec"]["reclaimable"] is True
        assert stored["metadata"]["annotations"]["volcano.sh/hierarchy"] == "root/lab"
        text = await called.refused(
            "annotate",
            "queue.scheduling.volcano.sh",
            "lab",
            "--overwrite",
            "volcano.sh/hierarchy-weights=1/x",
        )
        assert '"x" is invalid number' in text
    finally:
        await called.remove("queue.scheduling.volcano.sh", "lab")

    annotate = ("annotate", "namespace", called.namespace)
    await called.kubectl(*annotate, "scheduling.volcano.sh/queue-name=gone")
    try:
        await asyncio.sleep(0.5)
        text = await called.refused("create", "-f", "-", obj=pod_group(namespace=called.namespace))
        assert 'unable to find queue "gone"' in text
    finally:
        await called.kubectl(*annotate, "scheduling.volcano.sh/queue-name-")

    bad = pod(namespace=called.namespace, annotations={"volcano.sh/jdb-min-available": "x"})
    del bad["metadata"]["uid"], bad["status"]
    assert "POD-JDB-PARSE" in await called.refused("create", "-f", "-", obj=bad)
    bad["spec"]["schedulerName"] = "default-scheduler"
    await called.kubectl("create", "-f", "-", obj=bad)
    claims = pod("claims", namespace=called.namespace)
    claims["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    del claims["metadata"]["uid"], claims["status"]
    told = await called.kubectl("create", "-f", "-", obj=claims)
    assert "spec.resourceClaims: is not acted on yet: devices of claims are not allocated" in told
    lasts = pod("lasts", namespace=called.namespace, annotations={"pumice.dev/duration": "90"})
    del lasts["metadata"]["uid"], lasts["status"]
    told = await called.kubectl("create", "-f", "-", obj=lasts)
    assert 'time: missing unit in duration "90"' in told


async def test_an_outage_stops_only_what_needs_judgement(
    controlplane: ControlPlane, stage: JudgedNamespace
) -> None:
    space = stage.namespace
    try:
        async with answering(stage, controlplane.kubeconfig):
            await asyncio.to_thread(controlplane.apply, queue("default", state=""))
            held = bare_job(space)
            held["metadata"]["finalizers"] = ["pumice.dev/test"]
            await stage.kubectl("apply", "-f", "-", obj=held)
            group = pod_group(namespace=space)
            del group["metadata"]["uid"]
            await stage.kubectl("create", "-f", "-", obj=group)

        text = await stage.refused("create", "-f", "-", obj=job("other", namespace=space))
        assert 'failed calling webhook "mutatejob.volcano.sh"' in text
        for scheduler in ("default-scheduler", "volcano"):
            plain = pod(scheduler, namespace=space)
            del plain["metadata"]["uid"], plain["status"]
            plain["spec"]["schedulerName"] = scheduler
            await asyncio.to_thread(controlplane.apply, plain)

        label: Raw = {"metadata": {"labels": {"a": "b"}}}
        await stage.merge("vcjob", "train", label)
        await stage.merge("queue.scheduling.volcano.sh", "default", label)
        await stage.merge("podgroup", "pg", {"status": {"phase": "Inqueue"}})
        state = '{"status":{"state":{"phase":"Running"}}}'
        await stage.kubectl(
            "patch", "vcjob", "train", "--subresource=status", "--type=merge", "-p", state
        )
        await stage.remove("vcjob", "train")
        await stage.merge("vcjob", "train", {"metadata": {"finalizers": None}})
        assert "NotFound" in await stage.kubectl("get", "vcjob", "train", check=False)
        await stage.refused(
            "annotate", "queue.scheduling.volcano.sh", "default", "volcano.sh/hierarchy=root/x"
        )
    finally:
        await forget(stage)
        unlabelled = {"metadata": {"labels": {"a": None}}}
        await stage.merge("queue.scheduling.volcano.sh", "default", unlabelled)


LATER = (
    (
        "CronJob",
        "batch",
        {"schedule": "0 0 * * 0", "jobTemplate": {"spec": job()["spec"]}},
        {"schedule": "0 0 * * 7", "jobTemplate": {"spec": job(plugins={"nope": []})["spec"]}},
        ["CRON-SCHEDULE", "JOB-PLUGIN"],
    ),
    (
        "JobTemplate",
        "flow",
        job()["spec"],
        job(plugins={"nope": []})["spec"],
        ["JOB-PLUGIN"],
    ),
    (
        "JobFlow",
        "flow",
        {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]},
        {"flows": [{"name": "b", "dependsOn": {"targets": ["a", "b"]}}]},
        ["FLOW-UNDEFINED", "FLOW-CYCLE"],
    ),
    (
        "HyperNode",
        "topology",
        {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]},
        {
            "tier": 1,
            "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "n(?!1)"}}}],
        },
        ["HN-REGEX"],
    ),
)


@pytest.mark.parametrize(
    ("kind", "group", "good", "bad", "codes"), LATER, ids=[x[0] for x in LATER]
)
async def test_kinds_whose_controllers_come_later_are_judged(
    called: JudgedNamespace, kind: str, group: str, good: Raw, bad: Raw, codes: list[str]
) -> None:
    def manifest(spec: Raw) -> Raw:
        return {
            "apiVersion": f"{group}.volcano.sh/v1alpha1",
            "kind": kind,
            "metadata": {"name": called.namespace},
            "spec": spec,
        }

    told = await called.refused("create", "-f", "-", obj=manifest(bad))
    assert all(f"[{code}]" in told for code in codes), told
    assert "no matches" not in await called.kubectl("apply", "-f", "-", obj=manifest(good))
    again = await called.kubectl("apply", "-f", "-", obj=manifest(good))
    assert again.strip().endswith("unchanged")
    resource = f"{kind.lower()}s.{group}.volcano.sh"
    stored = await called.get(resource, called.namespace)
    stored["spec"] = bad
    assert f"[{codes[0]}]" in await called.refused("replace", "-f", "-", obj=stored)
    await called.kubectl("delete", resource, called.namespace)

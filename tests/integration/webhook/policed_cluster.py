"""A real cluster in which the chart's policies judge what the user `judged` sends, as webhooks do in `judged_cluster`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import yaml

from pumice.api.kinds import CONFIG_MAP, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from tests.integration.webhook.judged_cluster import JudgedCluster, Verdict
from tests.kit.waiting import until
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import CHART, NAMESPACE, RELEASE
from tests.support.policies import CODE
from tests.unit.webhook.reviewing import Raw

_IS_JUDGED = {"name": "is-judged", "expression": "request.userInfo.username == 'judged'"}
_GROUP, _VERSION = "admissionregistration.k8s.io", "v1"
_CANARY = "policed"


def rendered(plane: ControlPlane, *settings: str) -> list[Raw]:
    """The policies and bindings that the chart installs.

    Args:
        plane: Knows helm.
        settings: Values of the chart beside the mode, as `--set` takes them.
    """
    values = [each for value in ("admission.mode=policies", *settings) for each in ("--set", value)]
    text = plane.helm("template", RELEASE, str(CHART), *values, namespace=NAMESPACE).stdout
    found = [each for each in yaml.load_all(text, Loader=_LOADER) if each is not None]
    return [each for each in found if "AdmissionPolicy" in each["kind"]]


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _kind(manifest: Raw) -> Kind:
    name = manifest["kind"]
    plural = name.lower() + "s" if name.endswith("Binding") else name.lower()[:-1] + "ies"
    return Kind(_GROUP, _VERSION, name, plural, False)


@asynccontextmanager
async def _installed(api: Client, objects: list[Raw]) -> AsyncIterator[None]:
    """Have policies and bindings for as long as the block lasts."""
    canaries = [*_canary("Mutating", _MUTATION), *_canary("Validating", _VALIDATION)]
    created = []
    try:
        for manifest in (*objects, *canaries):
            await api.create(_kind(manifest), manifest)
            created.append(manifest)
        await _until_known(api, known=True)
        yield
    finally:
        for manifest in reversed(created):
            await api.delete(_kind(manifest), manifest["metadata"]["name"])
        await _until_known(api, known=False)


_MUTATION: Raw = {
    "reinvocationPolicy": "Never",
    "mutations": [
        {
            "patchType": "JSONPatch",
            "jsonPatch": {
                "expression": "[JSONPatch{op: 'add', path: '/data', value: {'mutated': 'yes'}}]"
            },
        }
    ],
}
_VALIDATION: Raw = {"validations": [{"expression": "!('mutated' in object.?data.orValue({}))"}]}


def _canary(sort: str, spec: Raw) -> list[Raw]:
    """A policy about one ConfigMap: once it is in effect, those installed before it are."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [{**rule, "operations": ["CREATE"]}]}
    of_canary = {"name": "canary", "expression": f"object.metadata.name == '{_CANARY}'"}
    common = {"apiVersion": f"{_GROUP}/{_VERSION}", "metadata": {"name": _CANARY}}
    policy = {
        **common,
        "kind": f"{sort}AdmissionPolicy",
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": [of_canary],
            **spec,
        },
    }
    actions = {"validationActions": ["Deny"]} if sort == "Validating" else {}
    binding = {
        **common,
        "kind": f"{sort}AdmissionPolicyBinding",
        "spec": {"policyName": _CANARY, **actions},
    }
    return [policy, binding]


async def _until_known(api: Client, *, known: bool) -> None:
    """Wait until the canary is in effect, or no more."""

    async def is_known() -> bool:
        return await _is_refused(api) == known

    await until(is_known, "the API server takes note of policies")


async def _is_refused(api: Client) -> bool:
    """Whether the canary is refused, which it is once it has been mutated."""
    canary = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _CANARY}}
    path = CONFIG_MAP.collection("default")
    try:
        await api.raw("POST", path, canary, query={"dryRun": "All"})
    except ApiError as error:
        return "AdmissionPolicy" in error.message
    return False


@asynccontextmanager
async def policed(
    api: Client, ensure: Callable[[str], None], objects: list[Raw]
) -> AsyncIterator[JudgedCluster]:
    """A cluster with policies, for as long as the block lasts.

    Args:
        api: An administrator's session with the control plane.
        ensure: Creates a namespace unless it exists.
        objects: The policies and bindings.
    """
    cluster = JudgedCluster(api, ensure)
    await cluster.begin()
    for manifest in objects:
        if "matchConstraints" in manifest["spec"]:
            conditions = manifest["spec"].get("matchConditions", [])
            manifest["spec"]["matchConditions"] = [*conditions, _IS_JUDGED]
    async with _installed(api, objects):
        try:
            yield cluster
        finally:
            await cluster.clear()


def by_policy(verdict: Verdict) -> bool:
    """Whether a policy refused a request, and not the API server itself."""
    return verdict.error is not None and "AdmissionPolicy" in verdict.error.message


def told(verdict: Verdict) -> set[str]:
    """Codes of the rules for which a policy refused a request."""
    message: Any = verdict.error.message if verdict.error is not None else ""
    return set(CODE.findall(message))

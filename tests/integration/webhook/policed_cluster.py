"""A real cluster whose policies judge what the user `judged` sends, as webhooks do in `judged_cluster`."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.kinds import CONFIG_MAP, Kind
from pumice.cluster.client import Client
from pumice.cluster.errors import ApiError
from pumice.webhook.policies.manifests import binding, policies
from pumice.webhook.policies.mutations import mutations
from pumice.webhook.settings import AdmissionSettings
from tests.integration.webhook.judged_cluster import JudgedCluster, Verdict
from tests.unit.webhook.reviewing import Raw

__all__ = ["IS_JUDGED", "by_policy", "installed", "manifests", "policed", "told"]

IS_JUDGED = {"name": "is-judged", "expression": "request.userInfo.username == 'judged'"}
_GROUP, _VERSION = "admissionregistration.k8s.io", "v1"
_CODE = re.compile(r"\[([A-Z]+(?:-[A-Z]+)+)\]")
_CANARY = "policed"
_PATIENCE = 300
"""Times that the API server is asked whether it has learned of the policies, a tenth of a second apart."""


def manifests(settings: AdmissionSettings, kinds: Collection[Kind]) -> list[Raw]:
    """The policies and bindings of some kinds, for what `judged` sends."""
    plurals = {kind.plural for kind in kinds}
    found = []
    for manifest in (*mutations(settings), *policies(settings)):
        if manifest["metadata"]["name"].split("-")[1] not in plurals:
            continue
        if "matchConstraints" in manifest["spec"]:
            conditions = manifest["spec"].setdefault("matchConditions", [])
            manifest["spec"]["matchConditions"] = [*conditions, IS_JUDGED]
        found.append(manifest)
    return found


def _kind(manifest: Raw) -> Kind:
    name = manifest["kind"]
    plural = name.lower() + "s" if name.endswith("Binding") else name.lower()[:-1] + "ies"
    return Kind(_GROUP, _VERSION, name, plural, False)


@asynccontextmanager
async def installed(api: Client, objects: list[Raw]) -> AsyncIterator[None]:
    """Have policies and bindings for as long as the block lasts."""
    canaries = [*_canary("Mutating", _MUTATION), *_canary("Validating", _VALIDATION)]
    try:
        for manifest in (*objects, *canaries):
            await api.create(_kind(manifest), manifest)
        await _until_known(api, known=True)
        yield
    finally:
        for manifest in (*canaries, *objects):
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
    """A policy about one ConfigMap, by which it shows that those installed before it are known."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [{**rule, "operations": ["CREATE"]}]}
    of_canary = {"name": "canary", "expression": f"object.metadata.name == '{_CANARY}'"}
    policy = {
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "kind": f"{sort}AdmissionPolicy",
        "metadata": {"name": _CANARY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": [of_canary],
            **spec,
        },
    }
    return [policy, binding(sort, _CANARY, ["Deny"] if sort == "Validating" else None)]


async def _until_known(api: Client, *, known: bool) -> None:
    """Wait until the API server has learned of the canary, or that it is gone."""
    for _ in range(_PATIENCE):
        if await _is_refused(api) == known:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the API server does not learn of policies")


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
    api: Client, ensure: Callable[[str], None], settings: Mapping[Kind, AdmissionSettings]
) -> AsyncIterator[JudgedCluster]:
    """A cluster with policies, for as long as the block lasts.

    Args:
        api: An administrator's session with the control plane.
        ensure: Sees to it that there is a namespace.
        settings: Settings of admission for each kind that is judged.
    """
    cluster = JudgedCluster(api, ensure)
    await cluster.begin()
    objects = [each for kind, of_kind in settings.items() for each in manifests(of_kind, (kind,))]
    async with installed(api, objects):
        try:
            yield cluster
        finally:
            await cluster.clear()


def by_policy(verdict: Verdict) -> bool:
    """Whether a policy refused a request, and not the API server itself."""
    return verdict.error is not None and "AdmissionPolicy" in verdict.error.message


def told(verdict: Verdict) -> list[str]:
    """Codes of the rules for which a policy refused a request, each once."""
    message: Any = verdict.error.message if verdict.error is not None else ""
    return list(dict.fromkeys(_CODE.findall(message)))

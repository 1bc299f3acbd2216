"""`deploy/pumice.yaml` installs with kubectl alone what the chart installs by default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.manifests import CHART, NAMESPACE, Manifest, Render, of_kind
from tests.kit.tables import documents
from tests.kit.waiting import wait_until
from tests.support.controlplane.builder import Builder
from tests.support.controlplane.cluster import ControlPlane
from tests.support.installation import remove_cluster_wide
from tools.plain_manifest import main

pytestmark = pytest.mark.binaries

FILE = Path(__file__).resolve().parents[2] / "deploy/pumice.yaml"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def manifests() -> list[Manifest]:
    return documents(FILE.read_text())


def test_it_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    helm = str(Builder().ensure()["helm"])
    said = capsys.readouterr()
    assert main(["--check", "--helm", helm, str(FILE)]) == 0, said.err


def test_a_stale_one_is_named_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    helm, stale = str(Builder().ensure()["helm"]), tmp_path / "pumice.yaml"
    stale.write_text("old\n")
    assert main(["--check", "--helm", helm, str(stale)]) == 1
    assert f"not up to date, run `make manifests`: {stale}" in capsys.readouterr().err
    assert stale.read_text() == "old\n"
    assert main(["--helm", helm, str(stale)]) == 0
    assert stale.read_text() == FILE.read_text()


def test_without_helm_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--helm", str(tmp_path / "none"), str(tmp_path / "pumice.yaml")]) == 1
    assert "none" in capsys.readouterr().err


def test_it_holds_what_the_chart_renders_and_nothing_of_helm(render: Render) -> None:
    rendered = {(each["kind"], each["metadata"]["name"]) for each in render()}
    crds = {("CustomResourceDefinition", path.stem) for path in (CHART / "crds").glob("*.yaml")}
    held = [(each["kind"], each["metadata"]["name"]) for each in manifests()]
    assert held[0] == ("Namespace", NAMESPACE)
    assert set(held) == rendered | crds | {held[0]}
    assert len(held) == len(set(held))
    assert "helm.sh/" not in FILE.read_text()
    assert "managed-by" not in FILE.read_text()


def test_its_scheduler_may_write_to_which_queue_pods_are_charged() -> None:
    [policy] = of_kind(manifests(), "ValidatingAdmissionPolicy")
    accounts = [
        f"system:serviceaccount:{each['metadata']['namespace']}:{each['metadata']['name']}"
        for each in of_kind(manifests(), "ServiceAccount")
    ]
    [condition] = [
        each["expression"]
        for each in policy["spec"]["matchConditions"]
        if "username" in each["expression"]
    ]
    assert [each for each in accounts if f"'{each}'" in condition] == [
        f"system:serviceaccount:{NAMESPACE}:pumice-scheduler"
    ]


def test_whatever_refers_to_something_comes_after_it() -> None:
    """So that one `kubectl apply` is enough, and no webhook is asked before it is there."""
    kinds = [each["kind"] for each in manifests() if "AdmissionPolicy" not in each["kind"]]
    assert kinds[0] == "Namespace"
    assert kinds.index("Deployment") > kinds.index("CustomResourceDefinition")
    assert kinds.index("Deployment") > kinds.index("ServiceAccount")
    first = min(kinds.index(kind) for kind in WEBHOOKS)
    assert set(kinds[first:]) == set(WEBHOOKS)


@pytest.fixture
def applied(controlplane: ControlPlane) -> Iterator[None]:
    """The manifest on the API server; afterwards all of it but the CRDs is gone."""
    try:
        controlplane.kubectl("apply", "-f", str(FILE))
        yield
    finally:
        remove_cluster_wide(controlplane)
        controlplane.remove_namespace(NAMESPACE)
        controlplane.wait_until_gone(NAMESPACE)


def generations(plane: ControlPlane, verb: str) -> dict[tuple[str, str], int]:
    """How often what is desired of each object has changed, as `kubectl VERB` shows the objects."""
    found = json.loads(plane.kubectl(verb, "-f", str(FILE), "-o", "json").stdout)["items"]
    return {
        (each["kind"], each["metadata"]["name"]): each["metadata"].get("generation", 0)
        for each in found
    }


@pytest.mark.usefixtures("applied")
def test_one_apply_installs_it_and_the_next_changes_nothing(controlplane: ControlPlane) -> None:
    names = [each["metadata"]["name"] for each in of_kind(manifests(), "Deployment")]

    def started() -> bool:
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
        _, found = controlplane.request("GET", path)
        counts = {
            each["metadata"]["name"]: each["status"].get("replicas", 0) == each["spec"]["replicas"]
            for each in found["items"]
        }
        return counts == dict.fromkeys(names, True)

    # The namespace holds them to the restricted standard.
    wait_until(started, "the pods of all components", 60)
    before = generations(controlplane, "get")
    assert generations(controlplane, "apply") == before
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    _, found = controlplane.request("GET", f"{path}/volcano-admission-service-jobs-mutate")
    (webhook,) = found["webhooks"]
    assert webhook["clientConfig"]["service"]["namespace"] == NAMESPACE

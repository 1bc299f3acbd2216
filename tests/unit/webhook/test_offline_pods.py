"""Pods in files are judged as an API server judges them: by the rules about templates, which are compared with one."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.offline import judge
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import pod
from tests.unit.webhook.template_rows import pod_of, relative, template_rows

Raw = dict[str, Any]


def admission(*settings: str) -> Admission:
    return Admission(AdmissionSettings.from_assignments(settings), Snapshot.of([]), builtin())


def with_container(**fields: Any) -> Raw:
    return pod("p", containers=[{"name": "main", "image": "busybox"} | fields])


def outside_metadata(paths: Iterable[str]) -> Counter[str]:
    """How often each path stands there; labels and annotations are judged elsewhere, with paths of their own."""
    return Counter(path for path in paths if not path.startswith("metadata."))


def test_a_pod_is_refused_for_what_its_template_is() -> None:
    wrong = []
    for row in template_rows():
        found = judge(admission(*row.settings), pod_of(row.template))
        wanted = [relative(each.path) for each in row.judged().errors]
        paths = outside_metadata(each.path for each in found.errors)
        if found.allowed is bool(wanted) or paths != outside_metadata(wanted):
            wrong.append((row.name, [str(each) for each in found.errors]))
    assert wrong == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"containers": [{"name": "main"}]},
            "spec.containers[0].image: must name an image, found none [TPL-IMAGE]",
        ),
        (
            {"containers": []},
            "spec.containers: must have at least one container, found none [TPL-CONTAINERS]",
        ),
        (
            {},
            "spec.containers: must have at least one container, found none [TPL-CONTAINERS]",
        ),
        (
            {"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "b"}]},
            'spec.containers[1].name: "a" is already the name of spec.containers[0] [TPL-CONTAINER-DUP]',
        ),
    ],
)
@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"])
def test_a_pod_that_no_api_server_takes(spec: Raw, problem: str, scheduler: str) -> None:
    wanted = pod("p") | {"spec": {"schedulerName": scheduler} | spec}
    found = judge(admission(), wanted)
    assert [str(each) for each in found.errors] == [problem]
    assert found.patched["metadata"]["name"] == "p"


def test_a_pod_without_a_spec() -> None:
    wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert [each.code for each in judge(admission(), wanted).errors] == ["TPL-CONTAINERS"]


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_labels_and_annotations_are_reported_once(field: str) -> None:
    wanted = pod("p")
    wanted["metadata"][field] = {"my key": "x", "number": 3}
    paths = [each.path for each in judge(admission(), wanted).errors]
    assert sorted(paths) == [f"metadata.{field}[my key]", f"metadata.{field}[number]"]


def test_of_an_update_only_new_problems_are_reported() -> None:
    old = with_container(image="")
    same = judge(admission(), old | {"metadata": {"name": "p", "labels": {}}}, "UPDATE", old)
    assert same.allowed
    worse = judge(admission(), with_container(image="", name="A"), "UPDATE", old)
    assert [each.code for each in worse.errors] == ["TPL-CONTAINER-NAME"]


def test_settings_count_for_pods_too() -> None:
    found = judge(admission("rule.TPL-IMAGE=warn"), with_container(image=""))
    assert ([each.code for each in found.errors], [each.code for each in found.warnings]) == (
        [],
        ["TPL-IMAGE"],
    )

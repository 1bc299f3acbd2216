"""Which group a pod belongs to, and what becomes of the pod."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.plugins import builtin
from pumice.webhook.admission import Admission
from pumice.webhook.rules.resource_groups import NO_GROUPS, ResourceGroup, ResourceGroups
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot
from tests.kit.builders import pod
from tests.unit.webhook.reviewing import answer, operations, patched, request, reraise
from tests.unit.webhook.shapes import OBJECTS

Raw = dict[str, Any]


def test_a_pod_finds_the_first_group_that_claims_it() -> None:
    groups = ResourceGroups(
        [
            ResourceGroup(name="a", annotations=(("team", "x"), ("team", "y"), ("empty", ""))),
            ResourceGroup(name="b", namespaces=("lab",)),
            ResourceGroup(name="c", annotations=(("team", "x"), ("area", "z"))),
        ]
    )

    def found(namespace: str = "", **annotations: str) -> str | None:
        group = groups.find(namespace, annotations)
        return group.name if group is not None else None

    assert found(team="x", area="z") == "a"
    assert found("lab", team="y") == "a"
    assert found("lab", area="z") == "b"
    assert found(area="z") == "c"
    assert found(team="w", area="w") is None
    assert found("other") is None
    assert found(empty="") == "a"
    assert NO_GROUPS.find("lab", {"team": "x"}) is None
    assert not NO_GROUPS


GROUPS = ResourceGroups(
    [
        ResourceGroup(
            name="all",
            namespaces=("lab",),
            labels={"volcano.sh/nodetype": "lab", "a": "b"},
            affinity={"podAntiAffinity": {}},
            tolerations=({"key": "lab", "operator": "Exists"}, {"key": "gpu", "value": "a100"}),
            scheduler_name="volcano",
        )
    ]
)
ADMISSION = Admission(
    AdmissionSettings(scheduling_gates_queue_admission=True),
    Snapshot(),
    builtin(),
    groups=GROUPS,
    on_crash=reraise,
)
TOLERATIONS = st.sampled_from(
    [
        {"key": "lab", "operator": "Exists"},
        {"key": "gpu", "operator": "Equal", "value": "a100", "effect": ""},
        {"key": "other", "fromTheFuture": {"a": [1]}},
        {},
    ]
)
PODS: st.SearchStrategy[Raw] = st.fixed_dictionaries(
    {"containers": st.just([{"name": "main", "image": "busybox"}])},
    optional={
        "schedulerName": st.sampled_from(["", "volcano", "mine"]),
        "nodeSelector": st.one_of(
            st.none(), st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["b", "c"]))
        ),
        "affinity": st.sampled_from([None, {}, {"nodeAffinity": {}}]),
        "tolerations": st.one_of(st.none(), st.lists(TOLERATIONS, max_size=3)),
        "schedulingGates": st.one_of(
            st.none(),
            st.lists(
                st.sampled_from(
                    [{"name": "x"}, {"name": "scheduling.volcano.sh/queue-allocation-gate"}]
                ),
                max_size=2,
            ),
        ),
    },
)


def asked(obj: Raw) -> Raw:
    response = answer(ADMISSION, "/pods/mutate", request("/pods/mutate", obj))
    assert response["allowed"]
    return response


@settings(deadline=None)
@given(PODS, st.booleans())
def test_a_second_pass_changes_nothing_and_none_takes_anything_away(spec: Raw, gated: bool) -> None:
    marks = {"scheduling.volcano.sh/queue-allocation-gate": "true"} if gated else {}
    before = pod(namespace="lab", annotations=marks) | {"spec": spec}
    result = patched(copy.deepcopy(before), asked(before))
    assert operations(asked(result)) == []
    after = result["spec"]
    assert (spec.get("nodeSelector") or {}).items() - {("a", "c")} <= after["nodeSelector"].items()
    for field in ("tolerations", "schedulingGates"):
        present = spec.get(field) or []
        assert (after.get(field) or [])[: len(present)] == present
    if spec.get("affinity") is not None:
        assert after["affinity"] == spec["affinity"]
    assert after["schedulerName"] == "volcano"


@settings(deadline=None)
@given(OBJECTS)
def test_no_pod_is_too_odd_for_a_group(obj: Raw) -> None:
    for path in ("/pods/mutate", "/pods/validate"):
        body = request(path, obj) | {"namespace": "lab"}
        response = answer(ADMISSION, path, body)
        assert response["allowed"] or response["status"]["code"] == 422

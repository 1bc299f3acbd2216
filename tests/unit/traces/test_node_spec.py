"""`--nodes SPEC`."""

import pytest

from pumice.traces.node_spec import asked_resources, nodes_of
from pumice.traces.trace import TraceError, TraceJob


def test_groups_and_amounts() -> None:
    nodes, ample = nodes_of("2x8gpu,32cpu,256Gi + 4cpu+1x1cpu,8pods,example.com/disk=500m")
    assert [node.metadata.name for node in nodes] == ["node-1", "node-2", "node-3", "node-4"]
    amounts = [node.status.allocatable or {} for node in nodes]
    assert amounts[0] == amounts[1]
    assert {name: amounts[0][name] for name in ("cpu", "memory", "nvidia.com/gpu")} == {
        "cpu": "32",
        "memory": "256Gi",
        "nvidia.com/gpu": "8",
    }
    assert (amounts[2]["cpu"], amounts[2]["memory"]) == ("4", "32Ti")
    assert "nvidia.com/gpu" not in amounts[2]  # a group that names devices has them alone
    assert (amounts[3]["pods"], amounts[3]["example.com/disk"]) == ("8", "500m")
    assert ample == {"memory", "pods", "ephemeral-storage"}  # of one group at least
    assert len(nodes_of("16x4cpu").nodes) == 16


def test_what_no_group_names_is_ample() -> None:
    container = {"resources": {"requests": {"cpu": 1}, "limits": {"example.com/fpga": 1}}}
    manifest = {"spec": {"tasks": [{"template": {"spec": {"containers": [container]}}}]}}
    jobs = [
        TraceJob(name="a", submit=0, duration=1, min=1, requests={"nvidia.com/gpu": "1"}),
        TraceJob(name="b", submit=0, duration=1, min=1, requests={}, manifest=manifest),
    ]
    asked = asked_resources(jobs)
    assert asked == {"nvidia.com/gpu", "cpu", "example.com/fpga"}
    (node,), ample = nodes_of("4cpu", asked)
    assert ample - {"memory", "pods", "ephemeral-storage"} == {"nvidia.com/gpu", "example.com/fpga"}
    amounts = node.status.allocatable or {}
    assert (amounts["cpu"], amounts["nvidia.com/gpu"]) == ("4", "1000000")
    assert amounts["example.com/fpga"] == "1000000"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("", "'' describes no nodes"),
        ("4x", "'4x' is no amount, such as"),
        ("0x4cpu", "'0x4cpu' describes no nodes"),
        ("4cpu+", "'' describes no nodes"),
        ("16x4cpus/4cpu", "'4cpu' names cpu a second time"),
        ("2x8bananas", "'8bananas' is no amount, such as"),
        ("2xcpu=-1", "cpu is '-1'; expected 0 to"),
        ("2xcpu=1e30", "cpu is '1e30'; expected 0 to"),
        ("100001x1cpu", "more than 100,000 nodes"),
        ("99999999999999999999999x1cpu", "more than 100,000 nodes"),
    ],
)
def test_what_is_no_specification(spec: str, why: str) -> None:
    with pytest.raises(TraceError, match=why) as caught:
        nodes_of(spec)
    assert str(caught.value).startswith(f"'{spec}': ")

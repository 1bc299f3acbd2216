"""What a single look finds in order, the rules of the field find in order, too."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.webhook.rules.case import Case
from pumice.webhook.rules.templates import network, resources
from tests.unit.webhook.template_rows import BASE, judged

Raw = dict[str, Any]

PORTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["http", "web", "", "A_Name", "a-name-that-is-too-long"]),
            "containerPort": st.sampled_from([80, 81, 0, 65535, 65536, -1]),
            "protocol": st.sampled_from(["TCP", "UDP", "", "tcp"]),
            "hostPort": st.sampled_from([0, 80, 70000]),
            "hostIP": st.sampled_from(["", "10.0.0.1"]),
        },
    ),
    max_size=3,
)
NAMES = st.sampled_from(
    ["cpu", "memory", "gpu", "nvidia.com/gpu", "nvdia.com/gpu", "example.com/x", "hugepages-2Mi"]
)
AMOUNTS = st.dictionaries(
    NAMES,
    st.sampled_from(["1", "500m", "2Mi", "3Mi", "-1", 1, 2, 0.5, True, "x", None]),
    max_size=3,
)


def told(container: Raw) -> tuple[Any, ...]:
    template = copy.deepcopy(BASE)
    template["spec"]["containers"][0] |= container
    case: Case = judged(template)
    return case.errors, case.warnings, case.suggestions.spent


@settings(deadline=None)
@given(PORTS, PORTS)
def test_ports(found: list[Raw], beside: list[Raw]) -> None:
    for container in ({"ports": found}, {"ports": [*found, *beside]}):
        glanced = told(container)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(network, "_are_plain", lambda _: False)
            assert told(container) == glanced


@settings(deadline=None)
@given(AMOUNTS, AMOUNTS)
def test_amounts(limits: Raw, requests: Raw) -> None:
    for container in ({"limits": limits, "requests": requests}, {"limits": limits}):
        glanced = told({"resources": container})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(resources, "_are_plain", lambda *_: False)
            assert told({"resources": container}) == glanced

"""How the configuration of HyperNode discovery is read, and what is reported of it."""

from typing import Any

import pytest
import yaml

from pumice.controller.hypernodes import OFF, Discovery
from pumice.controller.hypernodes.reading import read
from pumice.controller.plan import RecordEvent
from tests.kit.tables import table
from tests.unit.controller.hypernodes.fake_cluster import FakeCluster, Raw, fixture_nodes


@pytest.mark.parametrize("case", table("hypernodes/configuration"), ids=lambda case: case["id"])
def test_what_is_read(case: Raw) -> None:
    before = read(_text(case["before"])) if "before" in case else OFF
    found = read(_text(case["text"]), before)
    enabled = case.get("enabled", True)
    assert found.enabled is enabled
    assert {each.name: list(each.keys) for each in found.types} == case.get("types", {})
    assert list(found.problems) == case.get("problems", [])
    assert list(found.not_built) == case.get("not_built", [])
    assert found.complete is case.get("complete", enabled)
    assert found.keep_when_empty is case.get("keep_when_empty", False)
    assert found.delete_when_disabled is case.get("delete_when_disabled", False)
    if "prefix" in case:
        assert found.types[0].prefix(1) == case["prefix"]
    assert read(_text(case["text"]), found) == found
    _assert_reported(found)


def _assert_reported(found: Discovery) -> None:
    """Problems are events, and nothing is deleted for a type that is not known."""
    cluster = FakeCluster()
    cluster.sync(fixture_nodes())
    before = set(cluster.objects)
    plan = cluster.sync({}, found)
    goes = found.delete_when_disabled or (found.complete and not found.keep_when_empty)
    assert (set(cluster.objects) == before) is not goes
    events = [(step.reason, step.message) for step in plan.steps if isinstance(step, RecordEvent)]
    assert [text for reason, text in events if reason == "DiscoverySourceNotBuilt"] == list(
        found.not_built
    )
    told = [text for reason, text in events if reason == "InvalidDiscovery"]
    assert all(each in told[0] for each in found.problems)
    assert len(told) == bool(found.problems)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else yaml.safe_dump(value)

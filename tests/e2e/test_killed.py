"""Five rounds of `make kill`: leaders are killed once a second while Jobs of all kinds come and go."""

import json

from tests.kill.rounds import run
from tests.support.controlplane.cluster import ControlPlane


async def test_nothing_is_lost_doubled_or_overcommitted(controlplane: ControlPlane) -> None:
    controlplane.establish()
    summary = await run(controlplane, rounds=5, seed="ci", settle=120, report=print)
    assert summary.violations == [], json.dumps(summary.json(), indent=2)
    assert sum(summary.killed.values()) + sum(summary.stopped.values()) == 5
    assert summary.bound > 10

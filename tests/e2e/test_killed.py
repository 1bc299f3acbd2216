"""Six rounds of `make kill`: leaders are killed or stopped once a second while Jobs of all kinds come and go.

With this seed a leader of each component is killed, and one of each is stopped for longer than its Lease lasts. After
each second round the webhook, etcd or the API server is killed, each once, and a hostile tenant attacks.
"""

import json

from tests.kill.components import COMPONENTS
from tests.kill.parts import PARTS
from tests.kill.rounds import run
from tests.support.controlplane.cluster import ControlPlane


async def test_nothing_is_lost_doubled_or_overcommitted(controlplane: ControlPlane) -> None:
    controlplane.establish()
    summary = await run(controlplane, rounds=6, seed="ci-17", each=2, settle=120, report=print)
    assert summary.violations == [], json.dumps(summary.json(), indent=2)
    assert sum(summary.killed.values()) + sum(summary.stopped.values()) == 6
    assert set(summary.killed) == set(summary.stopped) == set(COMPONENTS)
    assert summary.parts == dict.fromkeys(PARTS, 1)
    assert summary.bound > 10

"""What happens to a cluster between cycles, for properties that draw two clusters."""

from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from pumice.scheduler import ClusterState
from tests.unit.scheduler.scenarios import Scenario, node, pod, pod_group

Raw = dict[str, Any]
Event = Callable[[ClusterState], object]


def changes(first: Raw, second: Raw) -> list[Event]:
    """Nodes, PodGroups and pods of the second cluster come, nodes and pods of the first one go."""
    return [
        *(lambda state, row=row: state.set_node(node(row)) for row in second["nodes"]),
        *(
            lambda state, row=row: state.set_pod_group(pod_group(row))
            for row in second["podgroups"]
        ),
        *(lambda state, row=row: state.set_pod(pod(row)) for row in second["pods"]),
        *(lambda state, row=row: state.remove_node(row[0]) for row in first["nodes"]),
        *(lambda state, row=row: state.remove_pod(*row[:2]) for row in first["pods"]),
    ]


def in_turns(
    data: st.DataObject, dice: Any, events: list[Event], *scenarios: Scenario
) -> Iterator[None]:
    """Let up to four events at a time happen to each scenario, in any order."""
    dice.shuffle(events)
    while events:
        for _ in range(data.draw(st.integers(1, 4))):
            if events:
                event = events.pop()
                for each in scenarios:
                    event(each.state)
        yield

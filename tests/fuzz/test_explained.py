"""Whatever the objects of other users say, `explain` and the page say why each gang waits, and what each queue holds."""

from contextlib import suppress
from typing import Any

import msgspec
from hypothesis import given

from pumice.api.nodes import Node
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.cli.live.explanation_text import list_text, text_of
from pumice.cli.live.explanations import of_pod, of_queue, positioned_gangs
from pumice.cli.live.observed import ReadableCluster
from pumice.cli.live.simulated import Follower
from pumice.cli.live.web_rows import gang_row, group_row
from pumice.scheduler import load_config
from pumice.scheduler.simulate import ClusterObjects
from pumice.web import Commands
from pumice.web.pages import Pages
from tests.fuzz.test_scheduler import objects
from tests.kit.builders import node, pod, pod_group, queue
from tests.kit.examples import examples

Raw = dict[str, Any]

STATE: Raw = {"unreachableSince": None, "version": 1, "namespace": None, "now": 0.0}


@examples(20)
@given(objects())
def test_no_object_keeps_the_reasons_of_others_from_users(made: tuple[Raw, ...]) -> None:
    found = ClusterObjects(
        nodes=msgspec.convert([node("n1", "4"), node("n2", "4")], list[Node]),
        queues=msgspec.convert([queue("default"), queue("research")], list[Queue]),
        pod_groups=[msgspec.convert(pod_group("good", 1, queue="research"), PodGroup)],
        pods=[msgspec.convert(pod("good-0", group="good", cpu="9"), Pod)],
    )
    kinds: list[tuple[list[Any], type[Any]]] = [
        (found.queues, Queue),
        (found.pod_groups, PodGroup),
        (found.pods, Pod),
    ]
    for (known, type_), obj in zip(kinds, made, strict=True):
        with suppress(msgspec.ValidationError):  # which no watch cache takes
            known.append(msgspec.convert(obj, type_))
    follower, seen = Follower(load_config(None)), ReadableCluster(None, found)
    figures = follower.look(seen, 0.0)
    gangs = positioned_gangs(seen, figures)
    assert gangs["default/good"]["message"]
    groups = {each.metadata.key: group_row(each) for each in found.pod_groups}
    queues = [of_queue(each, seen, figures, gangs) for each in found.queues]
    pages = Pages(Commands())
    rest: Raw = {"notAllowed": [], "notComputed": None, "leftOut": ""}
    rows = [gang_row(gang, groups[key], []) for key, gang in gangs.items()]
    shown = pages.view("waiting", {"gangs": rows, **rest}, {}, STATE)
    drawn = [{**each, "depth": 0} for each in queues]
    shown += pages.view("queues", {"queues": drawn, "owners": {}, **rest}, {}, STATE)
    assert b"good" in shown
    told = [of_pod(each, seen, follower.follow, 0.0) for each in found.pods]
    assert list_text({"waiting": list(gangs.values()), "notAllowed": []})
    assert all(map(text_of, [*queues, *told]))

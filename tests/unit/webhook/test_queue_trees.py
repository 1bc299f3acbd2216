"""The tree with one queue as it would be; walks end, and a leaf is judged by its way up and its siblings."""

from collections import Counter
from collections.abc import Sequence

import pytest

from pumice.api.meta import ObjectMeta
from pumice.api.queues import Queue, QueueSpec
from pumice.plugins import builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.queues.checks import validate
from pumice.webhook.rules.queues.tree import Tree
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot


def made(name: str, parent: str = "", cpu: int = 0) -> Queue:
    amounts: dict[str, str | int] = {"cpu": cpu}
    spec = QueueSpec(parent=parent, capability=amounts, deserved=amounts) if cpu else None
    return Queue(metadata=ObjectMeta(name=name), spec=spec or QueueSpec(parent=parent))


def names(queues: Sequence[Queue]) -> list[str]:
    return [each.metadata.name for each in queues]


class Watched(Snapshot):
    """A view that counts what it is asked."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        super().__init__(queues)
        self.asked = Counter[str]()

    def queue(self, name: str) -> Queue | None:
        self.asked["queue"] += 1
        return super().queue(name)

    def children(self, name: str) -> Sequence[Queue]:
        self.asked["children"] += 1
        return super().children(name)

    def queues(self) -> Sequence[Queue]:
        self.asked["queues"] += 1
        return list(super().queues())


VIEW = Snapshot([made("root"), made("a"), made("b", "a"), made("c", "b"), made("d", "root")])


def test_a_queue_that_moves_is_where_it_goes() -> None:
    tree = Tree(VIEW, made("b", "d"))
    assert names(tree.climb()[0]) == ["d", "root"]
    assert tree.way() == ["d"]
    assert names(tree.children("a")) == []
    assert names(tree.children("d")) == ["b"]
    assert names(tree.children("b")) == ["c"]
    assert tree.parent is VIEW.queue("d")


def test_below_root_are_those_that_name_it_and_those_that_name_none() -> None:
    tree = Tree(VIEW, made("a"))
    assert sorted(names(tree.children("root"))) == ["a", "d"]
    assert tree.parent is VIEW.queue("root")
    assert Tree(VIEW, made("root")).children("root") == list(
        filter(None, map(VIEW.queue, ["d", "a"]))
    )


def test_nothing_is_above_root_whatever_it_says() -> None:
    tree = Tree(VIEW, made("root", "a"))
    assert tree.climb() == ([], "")
    assert tree.parent is None
    assert "root" not in names(tree.children("a"))


def test_a_queue_without_a_name_has_no_children() -> None:
    tree = Tree(VIEW, made("", "a"))
    assert tree.children("") == []
    assert names(tree.children("a")) == ["b", ""]


@pytest.mark.parametrize("parent", ["gone", "b", "c"])
def test_a_way_that_does_not_lead_to_root_is_none(parent: str) -> None:
    tree = Tree(VIEW, made("b", parent))
    assert tree.way() is None


@pytest.mark.parametrize(
    ("parent", "circles"),
    [("b", True), ("c", True), ("gone", False), ("a", False), ("", False), ("root", False)],
)
def test_a_cycle_is_distinguished_from_a_path_that_is_cut_off(
    parent: str, *, circles: bool
) -> None:
    assert Tree(VIEW, made("b", parent)).is_in_circle() == circles
    assert not Tree(Snapshot([]), made("x", "root")).is_in_circle()


def test_a_way_leads_to_root_also_where_no_queue_root_is() -> None:
    tree = Tree(Snapshot([made("a"), made("b", "a")]), made("c", "b"))
    assert tree.way() == ["b", "a"]


def test_a_cycle_of_thousands_is_looked_at_once() -> None:
    ring = [made(f"q{index}", f"q{(index + 1) % 3000}", cpu=9) for index in range(3000)]
    view = Watched([made("root"), *ring])
    case = Case(AdmissionSettings(), view, builtin())
    validate(case, made("new", "q0", cpu=1), None)
    assert [error.code for error in case.errors] == ["Q-CYCLE", "Q-SIB-DES"]
    assert len(case.errors[0].message) < 200
    validate(case, made("q5", "q9", cpu=8), ring[5])
    assert view.asked["queue"] < 5 * 3000
    assert view.asked["children"] < 5 * 3000


def test_a_leaf_among_a_thousand_queues_costs_its_way_up() -> None:
    """The view has an index of children, so that nothing walks through all queues."""
    queues = [made("root")]
    for first in range(10):
        queues.append(made(f"d{first}", "root", cpu=1000))
        for second in range(10):
            queues.append(made(f"d{first}-{second}", f"d{first}", cpu=100))
            queues.extend(
                made(f"d{first}-{second}-{third}", f"d{first}-{second}", cpu=10)
                for third in range(9)
            )
    view = Watched(queues)
    case = Case(AdmissionSettings(), view, builtin())
    validate(case, made("d4-4-4", "d4-4", cpu=19), made("d4-4-4", "d4-4", cpu=10))
    assert case.errors == []
    assert view.asked["queues"] == 0
    assert view.asked["queue"] + view.asked["children"] <= 25

    validate(case, made("d4-4-4", "d4-4", cpu=21), made("d4-4-4", "d4-4", cpu=10))
    assert [error.code for error in case.errors] == ["Q-SIB-DES"]
    assert view.asked["queue"] + view.asked["children"] <= 60

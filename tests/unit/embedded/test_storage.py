"""Versions, history and what a cursor into it sees."""

import pytest

from pumice.embedded.statuses import ApiStatusError
from pumice.embedded.storage import Storage, StoredWrite
from tests.kit.backups import compact

KEY = ("", "things")


def thing(name: str, **fields: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}, **fields}


def test_every_write_has_the_next_version() -> None:
    storage = Storage()

    first = storage.put(KEY, thing("a"))
    second = storage.put(("x", "others"), thing("b"))
    last = storage.remove(KEY, "ns", "a", thing("a"))

    assert [first.revision, second.revision, last.revision] == [2, 3, 4]
    assert last.obj["metadata"]["resourceVersion"] == "4"
    assert storage.revision == 4


def test_a_cursor_sees_what_follows_its_version() -> None:
    storage = Storage()
    storage.put(KEY, thing("a"))
    asked = storage.revision
    storage.put(KEY, thing("b"))
    storage.put(KEY, thing("a", changed=True))
    storage.remove(KEY, "ns", "b", thing("b"))
    table = storage.table(KEY)

    changes = table.since(table.position(asked))

    assert [(each.type, each.key[1]) for each in changes] == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert changes[1].old is not None
    assert "changed" not in changes[1].old.obj
    assert table.since(table.position(storage.revision)) == []


def test_lists_are_ordered_and_can_go_back() -> None:
    storage = Storage()
    for name in "cab":
        storage.put(KEY, thing(name))
    before = storage.revision
    storage.put(KEY, thing("a", changed=True))
    storage.remove(KEY, "ns", "c", thing("c"))
    storage.put(KEY, thing("d"))
    table = storage.table(KEY)

    assert [each.obj["metadata"]["name"] for each in table.items()] == ["a", "b", "d"]
    earlier = table.items_at(before)
    assert [each.obj["metadata"]["name"] for each in earlier] == ["a", "b", "c"]
    assert "changed" not in earlier[0].obj
    assert table.items("elsewhere") == []
    assert table.items_at(before, "elsewhere") == []


def test_history_is_bounded() -> None:
    storage = Storage(history=3)
    for number in range(20):
        storage.put(KEY, thing(f"t{number}"))
    table = storage.table(KEY)

    assert len(table.log) <= 6
    for forgotten in (1, table.floor - 1):
        with pytest.raises(ApiStatusError) as caught:
            table.position(forgotten)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
    with pytest.raises(ApiStatusError):
        table.items_at(2)
    with pytest.raises(ApiStatusError):
        table.since(0)
    changes = table.since(table.position(table.floor))
    assert [each.key[1] for each in changes] == [f"t{number}" for number in range(20)][
        -len(changes) :
    ]


def test_forgetting_everything_leaves_the_present() -> None:
    storage = Storage()
    storage.put(KEY, thing("a"))
    table = storage.table(KEY)

    compact(table)

    assert table.floor == storage.revision
    assert table.since(table.position(storage.revision)) == []
    assert len(table.items()) == 1


def test_a_resource_that_begins_later_has_no_past() -> None:
    storage = Storage()
    storage.put(KEY, thing("a"))

    table = storage.table(("", "later"))

    assert table.floor == storage.revision
    with pytest.raises(ApiStatusError):
        table.position(1)


def test_watchers_and_listeners_get_each_change() -> None:
    storage = Storage()
    seen: list[str] = []
    wakes: list[int] = []

    def listener(change: StoredWrite) -> None:
        seen.append(f"{change.type} {change.key[1]}")

    def wake() -> None:
        wakes.append(1)

    storage.listen(listener)
    storage.table(KEY).watchers.add(wake)

    storage.put(KEY, thing("a"))
    storage.remove(KEY, "ns", "a", thing("a"))
    storage.drop(KEY)

    assert seen == ["ADDED a", "DELETED a"]
    assert len(wakes) == 3


def test_the_text_of_a_version_is_made_once() -> None:
    version = Storage().put(KEY, thing("a"))

    assert version.raw is version.raw
    copied = version.copy()
    copied["metadata"]["name"] = "b"
    assert version.obj["metadata"]["name"] == "a"

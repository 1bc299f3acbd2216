"""Objects are found under every key they have now, and under none they had."""

from pumice.cluster.index import Index


def test_objects_are_filed_under_all_their_keys() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), ["x", "y"])
    index.put(("ns", "two"), ["y"])
    assert index.find("x") == [("ns", "one")]
    assert index.find("y") == [("ns", "one"), ("ns", "two")]
    assert index.find("z") == []


def test_a_changed_object_moves() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), ["x", "y"])
    index.put(("ns", "one"), ["z"])
    assert (index.find("x"), index.find("y")) == ([], [])
    assert index.find("z") == [("ns", "one")]


def test_a_removed_object_is_not_found() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), ["x"])
    index.remove(("ns", "one"))
    index.remove(("ns", "never"))
    assert index.find("x") == []

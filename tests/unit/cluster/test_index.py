"""Objects are found under every key they have now, and under none they had."""

import pytest

from pumice.cluster.cache import Index


def test_objects_are_filed_under_all_their_keys() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), index.keys_of(["x", "y"]))
    index.put(("ns", "two"), index.keys_of(["y"]))
    assert index.find("x") == [("ns", "one")]
    assert index.find("y") == [("ns", "one"), ("ns", "two")]
    assert index.find("z") == []


def test_a_changed_object_moves() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), index.keys_of(["x", "y"]))
    index.put(("ns", "one"), index.keys_of(["z"]))
    assert (index.find("x"), index.find("y")) == ([], [])
    assert index.find("z") == [("ns", "one")]


def test_a_removed_object_is_not_found() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), index.keys_of(["x"]))
    index.remove(("ns", "one"))
    index.remove(("ns", "never"))
    assert index.find("x") == []


def test_a_key_that_comes_twice_counts_once() -> None:
    index: Index[list[str]] = Index(lambda obj: obj)
    index.put(("ns", "one"), index.keys_of(["x", "x"]))
    assert index.find("x") == [("ns", "one")]
    index.put(("ns", "one"), index.keys_of(["x", "y", "x"]))
    assert (index.find("x"), index.find("y")) == ([("ns", "one")], [("ns", "one")])
    index.remove(("ns", "one"))
    assert index.keys() == []


def test_keys_that_cannot_be_computed_are_not_filed() -> None:
    index: Index[list[object]] = Index(lambda obj: iter(obj))
    index.put(("ns", "one"), index.keys_of(["x"]))
    with pytest.raises(TypeError):
        index.put(("ns", "one"), index.keys_of(["y", {}]))
    assert (index.find("x"), index.find("y")) == ([("ns", "one")], [])

"""Waiting lines whose keys grow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.scheduler.waiting.priority_queue import PriorityQueue


def test_the_smallest_key_comes_first() -> None:
    line: PriorityQueue[str] = PriorityQueue(len)
    for word in ("ccc", "a", "bb"):
        line.push(word)
    assert len(line) == 3
    assert [line.pop() for _ in range(3)] == ["a", "bb", "ccc"]


def test_several_that_are_put_in_together_come_in_their_turns() -> None:
    line: PriorityQueue[str] = PriorityQueue(len, moves=False)
    line.begin(["ccc", "a", "dddd"], [3, 1, 4])
    assert len(line) == 3
    assert line.pop() == "a"
    line.push("bb")
    assert [line.pop() for _ in range(3)] == ["bb", "ccc", "dddd"]
    assert not line


def test_keys_that_have_grown_are_noticed() -> None:
    """What was pushed with share 0 and has used something since goes behind the others."""
    shares = {"a": 0, "b": 1, "c": 2}
    line: PriorityQueue[str] = PriorityQueue(lambda name: (shares[name], name))
    for name in shares:
        line.push(name)
    shares["a"] = 5
    assert [line.pop() for _ in range(3)] == ["b", "c", "a"]


def test_what_is_put_in_between_comes_in_its_turn() -> None:
    line: PriorityQueue[int] = PriorityQueue(lambda number: number, moves=False)
    for number in (7, 3, 5, 3000, 9):
        line.push(number)
    assert [line.pop(), line.pop()] == [3, 5]
    for number in (8, 4, 10):
        line.push(number)
    assert [line.pop() for _ in range(6)] == [4, 7, 8, 9, 10, 3000]
    assert not line


def test_the_first_ones_that_are_not_wanted_are_taken_out_at_once() -> None:
    line: PriorityQueue[int] = PriorityQueue(lambda number: number, moves=False)
    for number in (7, 3, 5, 4, 9):
        line.push(number)
    assert line.pop_while(lambda number: number < 3) == []
    assert line.pop_while(lambda number: number != 5) == [3, 4]
    assert [line.pop() for _ in range(3)] == [5, 7, 9]
    assert line.pop_while(lambda _: True) == []


def test_keys_that_may_grow_are_looked_at_one_by_one() -> None:
    shares = {"a": 0, "b": 1, "c": 2}
    line: PriorityQueue[str] = PriorityQueue(lambda name: (shares[name], name))
    for name in shares:
        line.push(name)
    shares["a"] = 5
    assert line.pop_while(lambda _: True) == []
    assert line.pop() == "b"


def test_many_turns_come_in_order() -> None:
    """Places of what was taken out are given up now and then."""
    shares = dict.fromkeys(range(10), 0)
    line: PriorityQueue[int] = PriorityQueue(lambda name: (shares[name], name))
    for name in shares:
        line.push(name)
    for turn in range(5000):
        name = line.pop()
        assert name == turn % 10
        shares[name] += 1
        line.push(name)
    assert len(line) == 10


def test_an_element_alone_is_not_asked_for_its_key() -> None:
    asked: list[str] = []

    def key(name: str) -> str:
        asked.append(name)
        return name

    line = PriorityQueue(key)
    for _ in range(3):
        line.push("a")
        assert line.pop() == "a"
    assert asked == []
    line.push("b")
    line.push("a")
    assert [line.pop(), line.pop()] == ["a", "b"]


def test_an_element_whose_key_fails_does_not_take_another_one_with_it() -> None:
    line: PriorityQueue[float] = PriorityQueue(lambda number: 1 / number)
    line.push(0)
    with pytest.raises(ZeroDivisionError):
        line.push(2)
    assert [line.pop(), len(line)] == [2, 0]


def test_an_empty_line() -> None:
    with pytest.raises(IndexError):
        PriorityQueue(len).pop()


def test_keys_that_have_become_smaller_are_noticed_when_the_epoch_changes() -> None:
    """What lost something since it was pushed comes before the others; without a new epoch, keys may only grow."""
    shares = {"a": 1, "b": 2, "c": 3}
    epoch = [0]
    line: PriorityQueue[str] = PriorityQueue(lambda name: (shares[name], name), lambda: epoch[0])
    for name in shares:
        line.push(name)
    shares["c"] = 0
    assert line.pop() == "a"
    epoch[0] += 1
    assert [line.pop() for _ in range(2)] == ["c", "b"]


@given(st.lists(st.tuples(st.sampled_from(("push", "pop", "again")), st.integers(0, 9))))
def test_the_first_is_the_smallest_of_all_whatever_is_put_in_and_taken_out(
    steps: list[tuple[str, int]],
) -> None:
    """Keys of those that wait grow now and then; what was taken out is put back with a larger key, or the same."""
    keys: dict[int, int] = {}
    line: PriorityQueue[int] = PriorityQueue(lambda name: (keys[name], name))
    waiting: list[int] = []
    for number, (step, amount) in enumerate(steps):
        if step == "push" or not waiting:
            keys[number] = amount
            line.push(number)
            waiting.append(number)
            continue
        first = min(waiting, key=lambda name: (keys[name], name))
        assert line.pop() == first
        waiting.remove(first)
        if step == "again":
            keys[first] += amount // 5
            line.push(first)
            waiting.append(first)
        if waiting:
            keys[waiting[amount % len(waiting)]] += amount % 3
        assert len(line) == len(waiting)

"""Namespaces take turns, whatever is added, taken, returned and cancelled in between."""

import asyncio
from collections import Counter
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.turns import ACTIVE_SECONDS, Slots, Turns, first_segment
from tests.kit.waiting import until

Key = tuple[str, int]

ADD, TAKE, RETURN = "add", "take", "return"
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just(ADD), st.sampled_from("abcd"), st.integers(0, 5)),
        st.tuples(st.just(TAKE), st.just(""), st.just(0)),
        st.tuples(st.just(RETURN), st.just(""), st.integers(0, 20)),
    ),
    max_size=80,
)


def taken(turns: Turns[str], number: int) -> list[str]:
    return [turns.take() for _ in range(number)]


def test_namespaces_take_turns_and_keys_come_in_the_order_of_arrival() -> None:
    turns: Turns[str] = Turns(first_segment)
    for key in ("a/1", "a/2", "a/3", "b/1", "a/4", "c/1", "b/2", "a/1"):
        turns.add(key)
    assert len(turns) == 7
    assert taken(turns, 7) == ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3", "a/4"]
    with pytest.raises(KeyError):
        turns.take()


def test_a_key_waits_for_one_key_of_each_other_namespace() -> None:
    turns: Turns[str] = Turns(first_segment)
    for number in range(10_000):
        turns.add(f"a/{number}")
    for number in range(100):
        turns.add(f"b/{number}")
    taken(turns, 7)
    turns.add("c/1")
    assert taken(turns, 3)[-1] == "c/1"


def test_a_namespace_at_its_limit_leaves_the_rest_to_the_others() -> None:
    turns: Turns[str] = Turns(first_segment, most=2)
    for key in ("a/1", "a/2", "a/3", "b/1", "b/2"):
        turns.add(key)
    assert taken(turns, 4) == ["a/1", "b/1", "a/2", "b/2"]
    assert not turns.can_take()
    assert len(turns) == 1
    turns.returned("b/1")
    assert not turns.can_take()
    turns.returned("a/1")
    assert taken(turns, 1) == ["a/3"]


def test_others_are_those_that_could_be_taken_now() -> None:
    turns: Turns[str] = Turns(first_segment, most=1)
    turns.add("a/1")
    assert not turns.others("a")
    assert turns.others("b")
    turns.add("b/1")
    turns.add("b/2")
    assert turns.others("a")
    assert taken(turns, 2) == ["a/1", "b/1"]
    assert not turns.others("a")  # b has all that it may have


@given(OPERATIONS, st.none() | st.integers(1, 3))
def test_no_namespace_is_passed_over_twice(
    operations: list[tuple[str, str, int]], most: int | None
) -> None:
    """From the moment at which a namespace may have a key taken, each other one is served once at most before it is."""
    turns: Turns[Key] = Turns(itemgetter(0), most=most)
    waiting: dict[str, list[Key]] = {}
    working: list[Key] = []
    passed: dict[str, Counter[str]] = {}

    def can_be_served() -> set[str]:
        of_one = Counter(each for each, _ in working)
        return {each for each in waiting if most is None or of_one[each] < most}

    def take() -> None:
        key = turns.take()
        assert key == waiting[key[0]].pop(0), "the oldest of its namespace"
        waiting.update({key[0]: waiting[key[0]]})
        if not waiting[key[0]]:
            del waiting[key[0]]
        working.append(key)
        passed.pop(key[0])
        for counts in passed.values():
            counts[key[0]] += 1
            assert counts[key[0]] <= 1

    def note() -> None:
        served = can_be_served()
        assert turns.can_take() == bool(served)
        assert len(turns) == sum(map(len, waiting.values()))
        for namespace in served:
            passed.setdefault(namespace, Counter())

    for operation, namespace, number in operations:
        if operation == ADD:
            key = namespace, number
            turns.add(key)
            if key not in waiting.setdefault(namespace, []):
                waiting[namespace].append(key)
        elif operation == TAKE and can_be_served():
            take()
        elif operation == RETURN and working:
            turns.returned(working.pop(number % len(working)))
        note()
    while waiting or working:
        if can_be_served():
            take()
        else:
            turns.returned(working.pop())
        note()


async def test_slots_are_given_in_turns() -> None:
    slots = Slots(2)
    begun: list[str] = []
    ends = asyncio.Event()

    async def use(namespace: str) -> None:
        async with slots.slot(namespace):
            begun.append(namespace)
            await ends.wait()
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(use("a"))
        await asyncio.sleep(0)
        assert begun == ["a", "a"]
        group.create_task(use("b"))
        group.create_task(use("c"))
        await asyncio.sleep(0)
        ends.set()
    assert begun[:5] == ["a", "a", "b", "c", "a"]
    assert len(begun) == 52


async def test_a_namespace_has_all_slots_alone_and_an_eighth_beside_another() -> None:
    slots = Slots(16)
    held: Counter[str] = Counter()
    ends = {each: asyncio.Semaphore(0) for each in ("a", "b", "")}

    async def use(namespace: str) -> None:
        async with slots.slot(namespace):
            held[namespace] += 1
            await ends[namespace].acquire()
        held[namespace] -= 1

    async def end(namespace: str, number: int) -> None:
        for _ in range(number):
            ends[namespace].release()
        for _ in range(10):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(use("a"))
        group.create_task(use(""))
        await end("a", 0)
        assert held == {"a": 16}  # what is in no namespace does not count
        group.create_task(use("b"))
        await end("a", 2)
        assert held == {"a": 14, "": 1, "b": 1}
        await end("a", 12)
        assert held["a"] == 2
        await end("b", 1)
        await end("a", 1)
        assert held["a"] == 2  # it may have another request at once
        loop = asyncio.get_running_loop()
        loop.time, now = (lambda: now + ACTIVE_SECONDS), loop.time()  # type: ignore[method-assign]
        await end("a", 1)
        assert held == {"a": 15, "": 1, "b": 0}
        await end("", 1)
        await end("a", 50)


async def test_a_slot_is_not_lost_when_its_task_is_cancelled() -> None:
    """While the task waits, in the moment in which it is given the slot, and while it has it."""
    slots = Slots(1)
    begun: list[str] = []

    async def use(name: str, until: asyncio.Event) -> None:
        async with slots.slot(name):
            begun.append(name)
            await until.wait()

    never, now = asyncio.Event(), asyncio.Event()
    async with slots.slot("first"):
        waits, given = (asyncio.create_task(use(each, never)) for each in ("waits", "given"))
        last = asyncio.create_task(use("last", now))
        await asyncio.sleep(0)
        waits.cancel()
    given.cancel()  # it was given the slot, and has not run since
    await until(lambda: begun == ["last"])
    last.cancel()
    async with asyncio.timeout(60), slots.slot("next"):
        begun.append("next")
    await asyncio.gather(waits, given, last, return_exceptions=True)

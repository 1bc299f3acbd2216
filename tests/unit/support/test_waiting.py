"""What a test is told when something does not come about."""

import asyncio
from dataclasses import dataclass

import pytest

from tests.kit.waiting import NotReadyError, until, wait_until


async def test_the_true_answer_is_returned() -> None:
    answers = iter([0, 0, 3])
    assert await until(lambda: next(answers)) == 3
    answers = iter([0, 0, 4])
    assert wait_until(lambda: next(answers)) == 4


async def test_a_condition_may_be_a_coroutine_function() -> None:
    answers = iter([False, True])

    async def holds() -> bool:
        await asyncio.sleep(0)
        return next(answers)

    assert await until(holds) is True


async def test_the_last_answer_and_what_is_around_are_shown() -> None:
    with pytest.raises(NotReadyError, match=r"^bound: not after 0 s; last seen: \[\]\ntwo pods$"):
        await until(list, "bound", 0.01, around=lambda: "two pods")
    with pytest.raises(NotReadyError, match=r"^bound: not after 0 s$"):
        wait_until(lambda: False, "bound", 0.01)


@dataclass
class _Part:
    name: str
    running: bool = True

    def tail(self, lines: int) -> str:
        return "\n".join(f"{self.name} says {number:0900}" for number in range(100)[-lines:])


def test_the_last_lines_of_many_processes_are_few_and_short() -> None:
    parts = [_Part(f"part{number}") for number in range(7)]
    with pytest.raises(NotReadyError) as late:
        wait_until(lambda: False, "bound", 0.01, parts, around=lambda: "two pods")
    first, around, *lines = str(late.value).splitlines()
    assert (first, around, lines[0]) == ("bound: not after 0 s", "two pods", "--- part0")
    assert (len(lines), {len(line) for line in lines}) == (7 * 7, {9, 300})
    parts[3].running = False
    with pytest.raises(NotReadyError, match=r"^part3 ended while waiting for bound:\npart3 says"):
        wait_until(lambda: False, "bound", 0.01, parts)


async def test_without_words_the_condition_is_shown() -> None:
    with pytest.raises(NotReadyError, match=r"until\(lambda: 1 > 2, .*: not after 0 s"):
        await until(lambda: 1 > 2, seconds=0.01)
    with pytest.raises(NotReadyError, match=r"is_set.*: not after 0 s"):
        await until(asyncio.Event().is_set, seconds=0.01)


async def test_a_condition_that_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(NotReadyError, match="an answer: not after 0 s; last seen: None"):
        await until(lambda: asyncio.sleep(60), "an answer", 0.01)


async def test_a_condition_that_raises_is_heard() -> None:
    async def holds() -> bool:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await until(holds)

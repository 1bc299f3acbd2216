"""Of too many connections the one that is missed least has to go."""

import logging
import resource
from dataclasses import dataclass

import pytest

from pumice.webhook.server.crowd import Crowd, State, affordable


@dataclass(eq=False)
class Guest:
    """A connection that remembers whether it had to go."""

    state: State
    since: float = 0.0
    gone: bool = False

    def drop(self) -> None:
        self.gone = True


UNUSED, IDLE, ARRIVING, JUDGED = State


@pytest.mark.parametrize(
    ("guests", "goes"),
    [
        ([Guest(IDLE), Guest(UNUSED, 5), Guest(UNUSED, 7), Guest(ARRIVING)], 1),
        ([Guest(JUDGED), Guest(IDLE, 5), Guest(IDLE, 2), Guest(ARRIVING, 1)], 2),
        ([Guest(JUDGED), Guest(ARRIVING, 9), Guest(ARRIVING, 8)], 2),
        ([Guest(JUDGED), Guest(JUDGED)], None),
    ],
)
def test_the_most_dispensable_goes_for_a_new_one(guests: list[Guest], goes: int | None) -> None:
    for guest in guests:
        guest.gone = False
    reasons: list[str] = []
    new = Guest(UNUSED, 10)
    crowd = Crowd(len(guests), reasons.append)
    crowd.let_in(new, [*guests, new])
    assert [guest.gone for guest in [*guests, new]].index(True) == (
        len(guests) if goes is None else goes
    )
    assert sum(guest.gone for guest in [*guests, new]) == 1
    assert reasons == ["crowded"]


def test_nobody_goes_while_there_is_room() -> None:
    crowd = Crowd(2, lambda _: pytest.fail("somebody went"))
    old, new = Guest(UNUSED), Guest(UNUSED)
    crowd.let_in(new, [old, new])
    assert (old.gone, new.gone) == (False, False)


def test_it_is_said_once_a_minute_with_the_number_of_those_who_went(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    now = 0.0
    crowd = Crowd(1, lambda _: None, seconds=lambda: now)
    for now in (0.0, 1.0, 59.0, 60.0):  # noqa: B007 # the clock reads it
        crowd.let_in(Guest(UNUSED), [Guest(IDLE)])
    assert [record.args for record in caplog.records] == [(1, 1), (1, 3)]


def test_no_more_connections_than_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, limit in ((200, 68), (50, 1), (100_000, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert affordable(1000, 2) == limit

"""Options of components: the durations of leader election, and feature gates; and their event loop."""

import asyncio

import pytest
import typer

from pumice.cli.exits import UserError
from pumice.cli.options import ElectionOptions
from pumice.cli.processes.components import read_lease_times, run
from pumice.cli.processes.volcano_flags import is_on
from pumice.cluster.event_loop import EventLoop
from pumice.cluster.leader import DEFAULT_TIMES, LeaseTimes


def test_the_defaults_of_the_options_are_those_of_the_election() -> None:
    assert read_lease_times(ElectionOptions()) == DEFAULT_TIMES


def test_they_are_durations_or_seconds() -> None:
    expected = LeaseTimes(lease_duration=3.0, renew_deadline=1.5, retry_period=0.25)
    assert read_lease_times(ElectionOptions(True, None, "3", "1s500ms", "250ms")) == expected


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (("soon", "10s", "2s"), "--leader-elect-lease-duration 'soon': expected a duration"),
        (("15s", "0", "2s"), "--leader-elect-renew-deadline '0': expected a duration"),
        (("15s", "10s", "-2s"), "--leader-elect-retry-period '-2s': expected a duration"),
        (("5s", "10s", "2s"), "retry period < renew deadline < lease duration, found 2 s, 10 s"),
    ],
)
def test_others_are_refused(times: tuple[str, str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_lease_times(ElectionOptions(True, None, *times))


@pytest.mark.parametrize(
    ("gates", "expected", "ignored"),
    [
        ("", False, []),
        ("SchedulingGatesQueueAdmission=true", True, []),
        ("SchedulingGatesQueueAdmission", True, []),
        ("SchedulingGatesQueueAdmission=false", False, []),
        ("Other=true,SchedulingGatesQueueAdmission=true", True, ["--feature-gates=Other=true"]),
        ("PodLevelResources=false", False, ["--feature-gates=PodLevelResources=false"]),
    ],
)
def test_feature_gates_of_the_scheduler(gates: str, expected: bool, ignored: list[str]) -> None:
    assert is_on(gates, "SchedulingGatesQueueAdmission") == (expected, ignored)


def test_they_run_in_the_event_loop_whose_connections_close_nothing_else() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def work() -> None:
        loops.append(asyncio.get_running_loop())

    run(work)
    assert [type(each) for each in loops] == [EventLoop]


@pytest.mark.parametrize("error", [BrokenPipeError("oh"), SystemExit(0)], ids=repr)
def test_none_ends_without_a_log_entry(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        run(work)
    assert ended.value.exit_code == 1
    assert [each.message for each in caplog.records] == ["stopped by an unexpected error"]

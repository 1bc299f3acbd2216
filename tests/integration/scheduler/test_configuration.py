"""The configuration file of a running scheduler: changes are taken up, and a bad file changes nothing."""

import asyncio
from pathlib import Path

import pytest

from pumice.api.kinds import EVENT
from pumice.scheduler import load_config
from pumice.scheduler.worker import SchedulerWorker, WorkerSettings
from pumice.scheduler.worker.configuration import ActiveConfig
from pumice.scheduler.worker.metrics import SchedulerMetrics
from tests.integration.scheduler.stage import PERIOD, SchedulerStage
from tests.kit.builders import node
from tests.kit.clocks import ManualClock
from tests.kit.waiting import until

PACKED = "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: binpack}]}]\n"
STOPPED = "actions: enqueue\ntiers: [{plugins: [{name: gang}]}]\n"
BAD = "actions: enqueue, alocate\ntiers: [{plugins: [{name: gnag}]}]\n"
LACKING = "actions: enqueue, allocate\ntiers: [{plugins: [{name: extender}, {name: numa-aware}]}]\n"


class InForce:
    """A configuration that follows a file, and what is counted."""

    def __init__(self, file: Path, text: str) -> None:
        file.write_text(text)
        self.metrics = SchedulerMetrics()
        self.config = ActiveConfig(load_config(text), file, self.metrics, text=text.encode())
        self.file = file
        assert self.config.file is not None
        self.follower = self.config.file
        assert not self.look(), "the process began with it"

    def look(self, text: str | None = None) -> bool:
        if text is not None:
            self.file.write_text(text)
        before = self.config.config
        self.follower.look()
        return self.config.config is not before

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"pumice_scheduler_{name}", labels)


@pytest.fixture
def in_force(tmp_path: Path) -> InForce:
    return InForce(tmp_path / "volcano-scheduler.conf", PACKED)


def test_a_change_is_in_force(in_force: InForce) -> None:
    assert in_force.look(STOPPED)
    assert [spec.name for spec, _ in in_force.config.config.actions] == ["enqueue"]
    assert in_force.value("config_reads_total", result="loaded") == 1
    assert not in_force.look(), "nothing has changed"


def test_a_file_that_cannot_be_used_leaves_the_last_good_one_in_force(
    in_force: InForce, caplog: pytest.LogCaptureFixture
) -> None:
    in_force.look(STOPPED)
    assert not in_force.look(BAD)
    assert [spec.name for spec, _ in in_force.config.config.actions] == ["enqueue"]
    problem = str(in_force.config.problem)
    assert 'unknown action "alocate"' in problem
    assert problem.endswith(
        "(and 1 more, see the log); the configuration read before stays in effect"
    )
    assert in_force.value("config_unusable") == 1
    assert in_force.value("config_reads_total", result="failed") == 1
    assert len([each for each in caplog.records if each.levelname == "ERROR"]) == 2
    assert in_force.look(PACKED)
    assert in_force.config.problem is None
    assert in_force.value("config_unusable") == 0


@pytest.mark.parametrize("text", ["a: 2024-13-45", "[" * 5000, f"a: {'9' * 5000}"])
def test_nothing_that_a_file_may_say_ends_the_process(in_force: InForce, text: str) -> None:
    assert not in_force.look(text)
    assert in_force.config.problem is not None


def test_a_change_before_the_first_look_counts(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text(STOPPED)
    config = ActiveConfig(load_config(PACKED), file, SchedulerMetrics(), text=PACKED.encode())
    assert config.file is not None
    assert config.file.look()
    assert [spec.name for spec, _ in config.config.actions] == ["enqueue"]


def test_a_file_that_goes_or_is_no_text_changes_nothing(in_force: InForce) -> None:
    in_force.file.write_bytes(b"\xff\xfe")
    assert not in_force.look()
    assert "must be UTF-8 text" in str(in_force.config.problem)
    in_force.file.unlink()
    assert not in_force.look()
    assert "is gone" in str(in_force.config.problem)


def test_what_this_version_lacks_is_said_for_as_long_as_the_file_names_it(
    in_force: InForce,
) -> None:
    in_force.look(LACKING)
    assert in_force.value("config_missing", what="plugin extender") == 1
    assert in_force.value("config_missing", what="plugin numa-aware") == 1
    assert "does nothing: plugin extender, plugin numa-aware" in str(in_force.config.problem)
    in_force.look(PACKED)
    assert in_force.value("config_missing", what="plugin extender") is None
    assert in_force.config.problem is None


def test_an_action_without_a_plugin_that_takes_part_is_reported(
    in_force: InForce, caplog: pytest.LogCaptureFixture
) -> None:
    actions = "actions: enqueue, allocate, elect, shuffle, reserve\n"
    in_force.look(actions + "tiers: [{plugins: [{name: gang}]}]")
    assert str(in_force.config.problem) == (
        "does nothing without a plugin that takes part: action elect, action shuffle, action reserve"
    )
    assert "action elect does nothing without a plugin that takes part" in caplog.text
    assert in_force.value("config_missing", what="action shuffle") == 1
    zones = "{name: tdm, arguments: {tdm.revocable-zone.rz1: '10:00-21:00'}}"
    in_force.look(actions + f"tiers: [{{plugins: [{{name: reservation}}, {zones}]}}]")
    assert in_force.config.problem is None
    assert in_force.value("config_missing", what="action shuffle") is None


async def test_a_change_is_in_force_within_a_second_of_the_clock(tmp_path: Path) -> None:
    file, clock = tmp_path / "c", ManualClock()
    file.write_text(PACKED)
    config = ActiveConfig(
        load_config(PACKED), file, SchedulerMetrics(), text=PACKED.encode(), clock=clock
    )
    changes: list[str | None] = []
    config.news = lambda: changes.append(config.problem)
    assert config.file is not None
    following = asyncio.create_task(config.file.run())
    try:
        for text in (STOPPED, BAD, PACKED):
            await until(lambda: clock.sleeping)
            file.write_text(text)
            await clock.advance(1.0)
            await until(lambda: clock.sleeping)
        assert [problem is None for problem in changes] == [True, False, True]
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_a_running_scheduler_takes_up_a_change_and_tells_of_a_bad_one(
    stage: SchedulerStage, tmp_path: Path
) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(STOPPED)
    settings = WorkerSettings(period=PERIOD, leader_elect=True, identity="a")
    worker = SchedulerWorker(stage.client, load_config(STOPPED), settings, config_file=file)
    stage.store.create(node("n"))
    stage.gang("g", 1)
    async with stage.alive(worker):
        await stage.until(lambda: stage.phase("g") == "Inqueue")
        file.write_text(BAD)
        await stage.until(lambda: stage.events("ConfigUnusable"))
        assert 'unknown action "alocate"' in worker.notes["configuration"]()  # type: ignore[operator]
        assert stage.nodes_of("g") == [""]
        file.write_text(PACKED)
        await stage.until(lambda: stage.nodes_of("g") == ["n"])
        assert worker.notes["configuration"]() is None
        await stage.until(lambda: stage.events("ConfigLoaded"))
    (event,) = stage.events("ConfigUnusable")
    assert event["involvedObject"]["kind"] == "Lease"
    assert event["involvedObject"]["name"] == "pumice-scheduler"
    assert {each["type"] for each in stage.all(EVENT) if "Config" in each["reason"]} == {
        "Normal",
        "Warning",
    }

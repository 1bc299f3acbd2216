"""Variables that a template sets itself, and that plugins `svc` and `env` would set too."""

import pytest

from pumice.api.jobs import Job
from pumice.plugins import Raw, builtin, problems
from tests.unit.plugins.support import job, task

PLUGINS: dict[str, list[str]] = {"svc": [], "env": []}
PLACE = "spec.tasks[1].template.spec"


def job_with(*names: str, plugins: dict[str, list[str]] = PLUGINS) -> Job:
    """A Job of tasks a and w, of which an init container of w and its container set variables."""
    env = [{"name": name, "value": "mine"} for name in names]
    containers = [{"name": "c0", "env": env}]
    return job(
        "j",
        task("a"),
        task("w", 2, containers=containers, initContainers=containers),
        plugins=plugins,
    )


def told(found: Job, *, strict_upstream: bool = False) -> list[tuple[str, str]]:
    warnings = problems(found, builtin(), strict_upstream=strict_upstream).warnings
    assert {each.code for each in warnings} <= {"JOB-PLUGIN-KEPT"}
    return [(each.path, each.message.split()[0]) for each in warnings]


@pytest.mark.parametrize("name", ["VC_A_HOSTS", "VC_W_NUM", "VC_TASK_INDEX", "VK_TASK_INDEX"])
def test_each_place_that_keeps_its_own_is_reported(name: str) -> None:
    assert told(job_with("OTHER", name)) == [
        (f"{PLACE}.containers[0].env[1]", name),
        (f"{PLACE}.initContainers[0].env[1]", name),
    ]


@pytest.mark.parametrize(
    ("name", "plugins"),
    [
        ("VC_W_NUM", {"svc": ["--inject-hosts-env=false"]}),
        ("VC_W_NUM", {"env": []}),
        ("VC_TASK_INDEX", {"svc": []}),
        ("VC_OTHER_NUM", {"svc": []}),
    ],
)
def test_a_variable_that_is_set_nowhere_else_is_the_templates(
    name: str, plugins: dict[str, list[str]]
) -> None:
    assert told(job_with(name, plugins=plugins)) == []


def test_with_volcano_the_plugins_value_wins() -> None:
    assert told(job_with("VC_W_NUM", "VC_TASK_INDEX"), strict_upstream=True) == []


@pytest.mark.parametrize("env", [None, {}, "x", [None, {}, {"name": 3}]])
def test_what_is_no_list_of_variables_is_passed_over(env: Raw) -> None:
    containers = [{"name": "c0", "env": env}, None]
    assert told(job("j", task("w", containers=containers), plugins=PLUGINS)) == []


@pytest.mark.parametrize("path", ["/etc/volcano", "/etc/volcano/", "/root/.ssh/config"])
def test_a_block_device_in_a_plugins_place_stays_and_is_reported(path: str) -> None:
    containers = [{"name": "c0", "volumeDevices": [{"name": "v", "devicePath": path}, {}, None]}]
    found = job("j", task("w", containers=containers), plugins={"svc": [], "ssh": []})

    assert told(found) == [
        ("spec.tasks[0].template.spec.containers[0].volumeDevices[0].devicePath", f'"{path}"')
    ]

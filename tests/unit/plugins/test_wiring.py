"""A Job's plugins applied together."""

import pytest

from pumice.api.jobs import Job, Task
from pumice.plugins import (
    EnvVar,
    JobPlugin,
    PluginError,
    PodEdits,
    Raw,
    Values,
    Wiring,
    builtin,
    task_and_index,
)
from tests.kit.tables import table
from tests.unit.plugins.support import containers, env, job, pod_of, task, wired

DISPATCH = table("plugins/dispatch")


def test_variables_stand_in_the_order_of_the_plugins() -> None:
    """However the Job orders them."""
    plugins: dict[str, list[str]] = {"tensorflow": [], "env": [], "svc": []}
    train = job("j", task("worker", 2), plugins=plugins)

    pod = wired(train, pod_of("j-worker-1", "worker"))

    assert [name for name, _ in env(containers(pod)["c0"])] == [
        "VC_WORKER_HOSTS",
        "VC_WORKER_NUM",
        "VK_TASK_INDEX",
        "VC_TASK_INDEX",
        "TF_CONFIG",
        "PUMICE_TF_CLUSTER_FILE",
        "PUMICE_TF_TASK_TYPE",
        "PUMICE_TF_TASK_INDEX",
    ]
    assert pod["metadata"]["annotations"]["pumice.dev/wired"] == "svc,env,tensorflow"


def bare(row: Raw) -> dict[str, list[str]]:
    """The row's plugins without arguments."""
    return {name: [] for name in row["plugins"]}


@pytest.mark.parametrize("row", DISPATCH["pods"], ids=lambda row: row["id"])
def test_a_pod_carries_what_its_plugins_give(row: Raw) -> None:
    train = job(row["job"], task("w"), plugins=bare(row), namespace="test")

    container = containers(wired(train, pod_of(f"{row['job']}-w-0", "w")))["c0"]

    assert [name for name, _ in env(container)] == row["variables"]
    assert (
        list(dict.fromkeys(mount["name"] for mount in container["volumeMounts"])) == row["volumes"]
    )


@pytest.mark.parametrize("row", DISPATCH["jobs"], ids=lambda row: row["id"])
def test_the_objects_of_a_job_are_wanted_once(row: Raw) -> None:
    train = job(row["job"], task("w"), plugins=bare(row))
    wiring = Wiring(train, builtin())

    made = [f"{each['kind']}/{each['metadata']['name']}" for each in wiring.objects()]

    assert made + [f"Secret/{each.name}" for each in wiring.secrets()] == row["objects"]


def test_an_unknown_plugin_is_named() -> None:
    row = DISPATCH["unknown"]
    train = job("j", task("w"), plugins={row["plugin"]: []})

    with pytest.raises(PluginError, match=f'job "j": {row["message"]}'):
        Wiring(train, builtin())


def test_a_job_without_plugins_leaves_the_pod_alone() -> None:
    train = job("j", task("w"))
    pod = pod_of("j-w-0", "w")

    assert wired(train, pod) is pod
    assert Wiring(train, builtin()).objects() == []


def test_a_template_is_not_touched() -> None:
    train = job("j", task("worker", 2), plugins={"svc": [], "env": [], "tensorflow": []})
    template = train.tasks[0].template
    assert template is not None
    before = repr(template)

    pod = {"metadata": {"name": "j-worker-0"}, "spec": template["spec"]}
    Wiring(train, builtin()).pod(train.tasks[0], 0, pod)

    assert repr(template) == before


class Counting(JobPlugin):
    """Counts how often it prepares."""

    name = "counting"
    summary = "Counts."

    def __init__(self) -> None:
        self.prepared = 0

    def for_job(self, job: Job, values: Values):  # type: ignore[no-untyped-def]
        self.prepared += 1
        return super().for_job(job, values)

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:
        return PodEdits(env=(EnvVar("INDEX", str(index)),))


def test_a_plugin_prepares_once_for_all_pods() -> None:
    plugin = Counting()
    wiring = Wiring(
        job("j", task("w", 3), plugins={"counting": []}), builtin().with_plugin(plugin, "test")
    )

    pods = [wiring.pod(Task(name="w"), index, pod_of(f"j-w-{index}")) for index in range(3)]

    assert plugin.prepared == 1
    assert [env(containers(pod)["c0"]) for pod in pods] == [[("INDEX", str(i))] for i in range(3)]


@pytest.mark.parametrize(
    ("name", "annotation", "task_name", "index"),
    [
        ("j-my-task-12", "my-task", "my-task", 12),
        ("j-w-0", None, "default", 0),
        ("j-w-0", "", "default", 0),
        ("j-gone-3", "gone", "gone", 3),
    ],
)
def test_a_pod_is_found_by_its_annotation_and_name(
    name: str, annotation: str | None, task_name: str, index: int
) -> None:
    train = job("j", task("my-task", 20), task("w"))

    found, position = task_and_index(train, pod_of(name, annotation))

    assert (found.name, position) == (task_name, index)
    assert found.size == (20 if task_name == "my-task" else 0)


@pytest.mark.parametrize("name", ["a-b", "j-w-x", "j-w--", "", "j-w-²"])
def test_a_pod_whose_name_has_no_index_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="expected a name <job>-<task>-<index>"):
        task_and_index(job("j", task("w")), pod_of(name, "w"))

import pytest

from pumice.plugins import TEXT, Argument, ArgumentSpec, JobPlugin, Registry, builtin
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.drafts import DraftSpec, DraftTask
from pumice.webhook.rules.jobs.depends_on import launch_order
from pumice.webhook.settings import AdmissionSettings
from pumice.webhook.view import Snapshot

NAMES = ["launcher", "worker"]
SPEC = DraftSpec(plugins={"mpi": []}, tasks=[DraftTask(name=name) for name in NAMES])
BARE = Registry(tuple(each for each in builtin().entries if each.plugin.name != "mpi"))


class Launching(JobPlugin):
    """Somebody's plugin that takes the place of the built-in one."""

    name = "mpi"
    summary = "Starts the computation."
    arguments = ArgumentSpec(
        Argument("master", TEXT, "launcher", "task that starts the computation"),
        Argument("worker", TEXT, "worker", "task that takes part in it"),
    )


class Bare(JobPlugin):
    """Somebody's plugin that knows no masters."""

    name = "mpi"
    summary = "Does something else."


@pytest.mark.parametrize(
    ("registry", "ordered"),
    [
        (BARE.with_plugin(Launching(), "test"), True),
        (BARE.with_plugin(Bare(), "test"), False),
        (BARE, False),
    ],
)
def test_the_plugin_that_is_there_says_which_tasks_are_meant(
    registry: Registry, ordered: bool
) -> None:
    case = Case(AdmissionSettings(mpi_depends_on=True), Snapshot(), registry)
    launch_order(case, SPEC, NAMES, None)
    written = [(each.path, each.value) for each in case.patch.operations]
    assert written == ([("/spec/tasks/0/dependsOn", {"name": ["worker"]})] if ordered else [])

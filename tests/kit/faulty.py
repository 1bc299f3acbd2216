"""A scheduler plugin that fails where a test says so."""

from collections.abc import Callable
from typing import Any

from pumice.scheduler import Config, builtin_registry, load_config
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import Vote
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView

POINTS: dict[str, Any] = {
    "job_order": 0,
    "task_order": 0,
    "job_valid": None,
    "job_enqueueable": Vote.ABSTAIN,
    "job_enqueued": None,
    "job_ready": True,
    "job_pipelined": Vote.ABSTAIN,
    "allocatable": None,
    "node_filter": None,
    "node_score": None,
    "task_score": None,
    "on_allocate": None,
    "on_deallocate": None,
}
"""Where a plugin is asked about each gang, and what it answers where it does not fail."""

WHOLE: dict[str, Any] = {"queue_order": 0, "overused": False}
"""Where it is asked about something else."""

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: faulty
"""


class Fault:
    """Where and for which gangs the plugin fails.

    Attributes:
        point: Extension point, or `open`.
        gangs: Names of gangs; at points that know no gang, any name makes it fail.
        after: How many questions are answered before the first failure.
    """

    def __init__(self, point: str, *gangs: str, after: int = 0) -> None:
        self.point = point
        self.after = after
        self.gangs = set(gangs)

    def open(self, _session: SessionView, register: Registrar) -> None:
        """Register a function at the point."""
        if self.point == "open":
            self._fail("open")
            return
        answer = (POINTS | WHOLE)[self.point]
        getattr(register, self.point)(self._asked(answer))

    def _asked(self, answer: Any) -> Callable[..., Any]:
        def asked(*arguments: Any) -> Any:
            about = arguments[-1] if self.point == "allocatable" else arguments[0]
            self._fail(about)
            return answer

        return asked

    def _fail(self, about: Any) -> None:
        if isinstance(about, JobInfo):
            fails = about.name in self.gangs
        elif hasattr(about, "job"):  # a pod
            fails = about.job.partition("/")[2] in self.gangs
        elif hasattr(about, "shape"):  # a class of pods: the bad ones ask for 2 CPUs
            needs = {need.name: need.amount for need in about.shape.needs}
            fails = bool(self.gangs) and needs.get("cpu") == 2000
        else:
            fails = bool(self.gangs)
        self.after -= fails
        if fails and self.after < 0:
            raise ZeroDivisionError(f"fault at {self.point}")


def faulty_config(fault: Fault) -> Config:
    """A configuration with the plugin."""

    def build(_arguments: Arguments) -> Fault:
        return fault

    spec = PluginSpec(name="faulty", summary="Fails.", build=build)
    return load_config(CONFIG, builtin_registry().extended(plugins=[spec]))

"""Plugin `env`: gives each container the index of its pod within the task."""

from pumice.api.jobs import Job, Task
from pumice.plugins.arguments import Values
from pumice.plugins.edits import EnvVar, PodEdits
from pumice.plugins.interface import Findings, JobPlugin
from pumice.plugins.shared_checks import kept_warnings

VARIABLES = ("VK_TASK_INDEX", "VC_TASK_INDEX")
"""The variables with the index: Volcano's, and an older name of it."""


class Env(JobPlugin):
    """Sets `VC_TASK_INDEX`, and `VK_TASK_INDEX` for manifests older than that name."""

    name = "env"
    summary = "Gives every container the index of its pod within the task."
    after = ("svc", "ssh")

    def check(self, job: Job, values: Values) -> Findings:
        """Warn about templates that set an index themselves."""
        return Findings(warnings=tuple(kept_warnings(job, values, VARIABLES)))

    def pod_edits(self, job: Job, values: Values, task: Task, index: int) -> PodEdits:  # noqa: ARG002
        """Two variables with the index; the user's own take precedence."""
        text = str(index)
        return PodEdits(env=tuple(EnvVar(name, text) for name in VARIABLES))

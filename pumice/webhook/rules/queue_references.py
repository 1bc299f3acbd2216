"""The queue that a Job or a PodGroup names: it exists, it is open, and it is a leaf."""

from dataclasses import dataclass

from pumice.api import keys
from pumice.api.jobs import Job
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

__all__ = ["JOB_QUEUE", "RULES", "QueueRules", "job_queue", "queue_reference"]


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules about a named queue, under the codes of one kind."""

    missing: Rule
    unknown: Rule
    not_open: Rule
    root: Rule
    not_leaf: Rule

    @property
    def all(self) -> tuple[Rule, ...]:
        """All of them."""
        return (self.missing, self.unknown, self.not_open, self.root, self.not_leaf)

    @classmethod
    def of(cls, prefix: str, noun: str, *, tree_is_stricter: bool) -> "QueueRules":
        """The rules under codes that begin with a prefix.

        Args:
            prefix: For example `JOB`.
            noun: What names the queue, for titles.
            tree_is_stricter: Whether Volcano lets this kind name inner queues.
        """
        return cls(
            missing=Rule(
                f"{prefix}-QUEUE-MISSING",
                f"the queue of a {noun} exists",
                "Nobody pays for the pods of a queue that does not exist; they would wait for ever.",
                "queue: reserch",
                reason="FieldValueNotFound",
            ),
            unknown=Rule(
                f"{prefix}-QUEUE-UNKNOWN",
                f"the queue of a {noun} is among the objects at hand",
                "Without a cluster, or its state in files, nobody can tell whether the queue exists.",
                "queue: research",
                reason="FieldValueNotFound",
                level="warn",
            ),
            not_open=Rule(
                f"{prefix}-QUEUE-NOT-OPEN",
                f"the queue of a {noun} is open",
                "A closed queue takes nothing new.",
                "queue: closed-for-maintenance",
            ),
            root=Rule(
                f"{prefix}-QUEUE-ROOT",
                f"the queue of a {noun} is not root",
                "The queue root holds the other queues; it runs nothing itself.",
                "queue: root",
                stricter=tree_is_stricter,
            ),
            not_leaf=Rule(
                f"{prefix}-QUEUE-NOT-LEAF",
                f"the queue of a {noun} has no queues below it",
                "Its share is divided among its children; nothing is left for pods of its own.",
                "queue: department (with queues team-a and team-b below it)",
                stricter=tree_is_stricter,
            ),
        )


JOB_QUEUE = QueueRules.of("JOB", "Job", tree_is_stricter=False)

RULES = JOB_QUEUE.all


def job_queue(case: Case, job: Job) -> None:
    """Check the Job's queue."""
    queue_reference(case, JOB_QUEUE, job.spec.queue or keys.DEFAULT_QUEUE)


def queue_reference(case: Case, rules: QueueRules, name: str) -> None:
    """Check the queue that `spec.queue` names.

    A queue without a state is one that its controller has not reached yet, and counts as open.
    """
    path = "spec.queue"
    if name == keys.ROOT_QUEUE:
        case.report(rules.root, path, f'"{name}" holds other queues, name one of those')
        return
    queue = case.queue(name)
    if queue is None:
        _missing(case, rules, name)
        return
    if not queue.is_open:
        message = f'queue "{name}" is {queue.status.state}, it must be Open to take anything new'
        case.report(rules.not_open, path, message)
    if children := case.view.children(name):
        shown = ", ".join(sorted(each.metadata.name for each in children)[:_SHOWN])
        more = ", …" if len(children) > _SHOWN else ""
        count = f"{len(children)} queue{'' if len(children) == 1 else 's'}"
        message = f'queue "{name}" has {count} below it, name one of those: {shown}{more}'
        case.report(rules.not_leaf, path, message)


_SHOWN = 10


def _missing(case: Case, rules: QueueRules, name: str) -> None:
    hint = case.did_you_mean(name, [queue.metadata.name for queue in case.view.queues()])
    if case.view.complete:
        case.report(rules.missing, "spec.queue", f'there is no queue "{name}"{hint}')
    else:
        message = f'queue "{name}" is not in the given files, so it was not looked at{hint}'
        case.report(rules.unknown, "spec.queue", message)

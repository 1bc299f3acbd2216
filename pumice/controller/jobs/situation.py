"""A Job and its observed state at one moment, the input of `reconcile`; prepared for decisions: decoded, counted, sorted by owner."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from pumice.api import keys
from pumice.api.commands import Command
from pumice.api.failures import grouped
from pumice.api.jobs import DEFAULT_MAX_PODS, Job
from pumice.api.kinds import POD
from pumice.api.messages import shortened
from pumice.api.meta import Raw, number_in
from pumice.api.pods import Pod
from pumice.api.queues import Queue
from pumice.controller.jobs.job_pods import JobPods
from pumice.controller.jobs.job_pods import read as read_job_pods
from pumice.controller.jobs.phases import Facts, PhaseResult, known
from pumice.controller.jobs.status import Counts, compose, count, facts, with_failed_pods
from pumice.controller.jobs.subject import min_available, read
from pumice.controller.jobs.volumes import wanted_claims
from pumice.controller.objects import UnknownKindError, controls, controls_raw, owned
from pumice.controller.plan import PatchStatus, RequireAbsent
from pumice.plugins import (
    KeySecret,
    PluginError,
    PluginSettings,
    Registry,
    Wiring,
    problems,
)


@dataclass(frozen=True, slots=True)
class PlanFailure:
    """Why the last plan could not be carried out.

    Attributes:
        reason: One word, `FailedCreate` for example.
        message: One sentence, with what the API server said.
    """

    reason: str
    message: str

    def __post_init__(self) -> None:
        """Shorten the message: what the API server said may have a line for each field of an object."""
        object.__setattr__(self, "message", shortened(self.message))


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A Job and everything around it.

    Listed objects may have other owners; `reconcile` looks at the owners itself.

    Attributes:
        job: The Job as stored.
        pods: Pods that carry the Job's name in a label.
        ended: Pods with that label that had succeeded or failed by themselves, as far as that was seen (`lifetimes`), and
            since the status was last written were removed, or are being removed.
        group: The Job's PodGroup, when there is one.
        objects: Further objects: those with the Job's name in a label, and those whose names the Job
            needs, whatever their kind.
        commands: Commands that name the Job as their target.
        queue: The Job's queue, when it exists.
        priorities: PriorityClass values by name.
        absent: Names of pods of which the API server has said since the status was last written that they do not exist.
        trouble: Why the last plan could not be carried out.
        awaited: Whether the Job's JobFlow has not yet recorded its end, or its CronJob its run. If the Job were removed
            now, it would run again.
    """

    job: Raw
    pods: tuple[Pod, ...] = ()
    ended: tuple[Pod, ...] = ()
    group: Raw | None = None
    objects: tuple[Raw, ...] = ()
    commands: tuple[Command, ...] = ()
    queue: Queue | None = None
    priorities: Mapping[str, int] = msgspec.field(default_factory=dict)
    absent: Set[str] = frozenset()
    trouble: PlanFailure | None = None
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the size of Jobs and of a pass.

    Attributes:
        max_pods: Maximum number of pods of a Job.
        window: Pods that one pass creates at most, marks or removes at most, and asks the API server about at most.
        expire: Whether Jobs are removed when their `ttlSecondsAfterFinished` is over.
    """

    max_pods: int = DEFAULT_MAX_PODS
    window: int = 500
    expire: bool = True


LIMITS = Limits()
"""Those of a controller without settings."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """The input of all decisions about a Job.

    Attributes:
        observed: The observed state.
        job: The Job, complete.
        now: The moment, in UNIX seconds.
        pods: The Job's own pods, in the order of its tasks and of their indexes.
        wanted_pods: Those of them that it still wants, so without the ones that it no longer has since it was scaled.
        pods_of_others: Pods that carry the Job's name in a label and have another owner.
        job_pods: Existing and former pods of the Job.
        counts: The Job's own pods by phase.
        facts: The numbers for the state machine; only pods that the Job wants decide its phase.
        wiring: The Job's plugins; None when they cannot be used.
        wanted: Objects that plugins and volumes want.
        secrets: Secrets with key pairs that plugins want.
        annotations: Annotations that plugins want on the Job and that it lacks.
        plugin_problem: Why the plugins cannot be used, empty when they can.
        plugin_names: Plugins of the Job that this installation has.
        doubts: Warnings about its plugins' arguments; only for a new Job.
        strict: Whether restarts are counted as Volcano does.
        limits: Limits of the size of Jobs and of a pass.
    """

    observed: Observed
    job: Job
    now: float
    pods: tuple[Pod, ...]
    wanted_pods: tuple[Pod, ...]
    pods_of_others: tuple[Pod, ...]
    job_pods: JobPods
    counts: Counts
    facts: Facts
    wiring: Wiring | None
    wanted: tuple[Raw, ...]
    secrets: tuple[KeySecret, ...]
    annotations: Mapping[str, str]
    plugin_problem: str
    plugin_names: tuple[str, ...]
    doubts: tuple[str, ...]
    strict: bool
    limits: Limits

    @property
    def phase(self) -> str:
        """The Job's phase, as in the state machine."""
        return known(self.job.status.state.phase)

    @property
    def namespace(self) -> str:
        """Namespace of the Job and of everything that it owns."""
        return self.job.metadata.namespace

    @property
    def stored(self) -> Raw:
        """Status as stored."""
        return self.observed.job.get("status") or {}

    @property
    def stored_state(self) -> Raw:
        """`status.state` as stored."""
        return self.stored.get("state") or {}

    def staying(self, removing: Collection[str] = ()) -> Iterator[Pod]:
        """The Job's own pods that are not being removed."""
        for pod in self.pods:
            if pod.metadata.deletion_timestamp is None and pod.metadata.name not in removing:
                yield pod

    def unconfirmed(self, names: Iterable[str]) -> list[RequireAbsent]:
        """Requirements that pods do not exist which the caches do not show, unless the API server has said so already."""
        absent = self.observed.absent
        return [RequireAbsent(POD, self.namespace, name) for name in names if name not in absent]

    def status(
        self,
        verdict: PhaseResult,
        controlled: dict[str, str],
        *,
        removing: Iterable[Pod] = (),
        new_version: bool = False,
        retry: bool = False,
        failures: bool = False,
    ) -> list[PatchStatus]:
        """The status write for a phase result; None if nothing changes.

        Args:
            verdict: Phase, reason and message.
            controlled: `controlledResources`.
            removing: Pods that are removed once this is written; they count as terminating already.
            new_version: Whether another incarnation of the Job begins.
            retry: Whether it costs one of the Job's retries.
            failures: Whether the message also says why pods failed; that alone is no reason for a write.
        """
        names = {pod.metadata.name for pod in removing}
        lost = self.job_pods.lost_after(controlled)
        as_counted = not names and lost == self.job_pods.lost_by_task
        status = compose(
            self.stored,
            self.counts if as_counted else count(self.pods, names, lost),
            verdict,
            minimum=min_available(self.job),
            now=self.now,
            version=self.job.status.version + new_version,
            retry_count=self.job.status.retry_count + retry,
            controlled=controlled,
        )
        if status is None:
            return []
        if failures and self.counts.failed:
            status = with_failed_pods(status, grouped(self.staying(names)))
        return [PatchStatus(status)]


def situation_of(
    observed: Observed,
    registry: Registry,
    now: float,
    settings: PluginSettings,
    limits: Limits = LIMITS,
) -> Situation:
    """Prepare the observed state for decisions.

    Raises:
        UnusableError: No pods can be made from the Job.
    """
    job = read(observed.job, limits.max_pods)
    pods: list[Pod] = []
    pods_of_others: list[Pod] = []
    for pod in observed.pods:
        (pods if controls(job.metadata, pod.metadata) else pods_of_others).append(pod)
    ordered = _in_order(job, pods)
    found = (
        each["metadata"]["name"]
        for each in observed.objects
        if each.get("kind") == POD.kind and controls_raw(job.metadata, each)
    )
    ended = (pod for pod in observed.ended if controls(job.metadata, pod.metadata))
    job_pods = read_job_pods(job, ordered, now, found, ended)
    counts = count(ordered, lost=job_pods.lost_by_task)
    wanted_pods, decisive = ordered, counts
    if surplus := job_pods.surplus():
        wanted_pods = tuple(pod for pod in ordered if pod.metadata.name not in surplus)
        decisive = count(wanted_pods, lost=job_pods.lost_by_task)
    wired = _wired(job, registry, settings)
    return Situation(
        observed=observed,
        job=job,
        now=now,
        pods=ordered,
        wanted_pods=wanted_pods,
        pods_of_others=tuple(pods_of_others),
        job_pods=job_pods,
        counts=counts,
        facts=facts(job, decisive),
        wiring=wired.wiring,
        wanted=(*owned(job.metadata, wanted_claims(job)), *wired.wanted),
        secrets=wired.secrets,
        annotations=wired.annotations,
        plugin_problem=wired.problem,
        plugin_names=tuple(
            name for name in sorted(job.spec.plugins or ()) if registry.get(name) is not None
        ),
        doubts=_doubts(job, registry, settings)
        if wired.wiring and not job.status.state.phase
        else (),
        strict=settings.strict_upstream,
        limits=limits,
    )


class _Wired(NamedTuple):
    """What the plugins of a Job want, or why they cannot be used."""

    wiring: Wiring | None = None
    wanted: tuple[Raw, ...] = ()
    secrets: tuple[KeySecret, ...] = ()
    annotations: Mapping[str, str] = {}
    problem: str = ""


def _wired(job: Job, registry: Registry, settings: PluginSettings) -> _Wired:
    try:
        wiring = Wiring(job, registry, settings=settings)
        wanted = owned(job.metadata, wiring.objects())
        annotations = wiring.job_annotations()
        return _Wired(wiring, tuple(wanted), tuple(wiring.secrets()), annotations)
    except (PluginError, UnknownKindError) as error:
        return _Wired(problem=str(error))
    except Exception as error:
        return _Wired(problem=unexpected_error(error))


def secret_names(
    job: Raw, registry: Registry, settings: PluginSettings, limits: Limits = LIMITS
) -> tuple[str, ...]:
    """Names of the Secrets with keys that a Job's plugins want; none where `situation` reports a problem."""
    try:
        wiring = Wiring(read(job, limits.max_pods), registry, settings=settings)
        return tuple(secret.name for secret in wiring.secrets())
    except Exception:
        return ()


def _doubts(job: Job, registry: Registry, settings: PluginSettings) -> tuple[str, ...]:
    try:
        found = problems(job, registry, strict_upstream=settings.strict_upstream)
        return tuple(map(str, found.warnings))
    except Exception as error:
        return (unexpected_error(error),)


def unexpected_error(error: Exception) -> str:
    """The message about an unexpected exception of a plugin."""
    return f"a plugin failed with {type(error).__name__}: {error}"


def _in_order(job: Job, pods: list[Pod]) -> tuple[Pod, ...]:
    positions = {task.name: position for position, task in enumerate(job.tasks)}

    def key(pod: Pod) -> tuple[int, int, str]:
        notes = pod.metadata.annotations or {}
        return (
            positions.get(notes.get(keys.TASK_SPEC, ""), len(positions)),
            number_in(notes.get(keys.TASK_INDEX)) or 0,
            pod.metadata.name,
        )

    return tuple(sorted(pods, key=key))

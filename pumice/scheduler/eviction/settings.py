"""What an action that evicts pods for gangs may evict: preempt, reclaim, gangpreempt and gangreclaim are settings of one search."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.api.queues import Queue
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.axis import Bools
from pumice.scheduler.model.candidates import Candidates, Preemptor, VictimCheck
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.points import Extension, SortKey
from pumice.scheduler.session.session import Session

MOST_DOMAINS = 8


class EvictionSetting(msgspec.Struct, frozen=True):
    """What an action evicts, and how it looks for it.

    Attributes:
        reclaims: Whether running pods of other queues go, wherever these are less entitled; otherwise pods of the same queue.
        by_gang: Whether gangs may go as a whole. Plugin `gang` then protects nothing, a PodGroup may protect its pods, and
            all other plugins must agree, whatever their tiers are. Otherwise each pod goes, or not, for itself.
        most_domains: Domains of the network that are looked at for a gang at most.
        breaks: Whether gangs may be evicted below their minimum at all, if they may go as a whole.
        priority_first: Whether all of a less important gang goes before the surplus of a more important one.
        everywhere: Whether all pods of a broken gang go; otherwise those of the domain do.
    """

    name: str
    reclaims: bool
    by_gang: bool
    most_domains: int = MOST_DOMAINS
    breaks: bool = True
    priority_first: bool = False
    everywhere: bool = True

    def configured(self, arguments: Arguments) -> "EvictionSetting":
        """The setting with what a configuration says."""
        if not self.by_gang:
            return self
        given = arguments.integer("maxDomains")
        return replace(
            self,
            most_domains=given if given > 0 else MOST_DOMAINS,
            breaks=arguments.flag("allowWholeBundle"),
            priority_first=arguments.text("victimOrderPolicy") == "priority-first",
            everywhere=arguments.text("wholeGang") == "all",
        )


class EvictionRules(msgspec.Struct, frozen=True):
    """What an action may evict for one gang.

    Attributes:
        checks: The plugins' checks; see `victims.judge`.
        classes: What of a pod that asks decides about their answers.
        queues: Queues whose pods are candidates, by row; not asked where `inside` names a gang.
        without: Gang whose pods are no candidates though its queue is accepted; empty for none.
        inside: Gang that is the only one whose pods are candidates; empty where many are.
        queue_key: Place of a victim's queue among queues.
        lasts: Whether `classes` follow from the PodGroup and the pods of a gang alone.
    """

    setting: EvictionSetting
    checks: Sequence[Extension[VictimCheck]]
    classes: Sequence[Callable[[Preemptor], Hashable]]
    queues: Bools
    without: str
    inside: str
    queue_key: Callable[[Queue], SortKey]
    lasts: bool

    def preemptor_class(self, session: Session, preemptor: Preemptor) -> Hashable:
        """Equal for pods for which the same pods may be evicted from the same nodes."""
        said = tuple([each(preemptor) for each in self.classes])
        job, queue = preemptor.job.key, preemptor.queue.metadata.name
        is_alone = self.without or self.inside or session.is_target(job)
        own = job if is_alone else ""
        return queue, self.inside, session.alike(preemptor.task), own, said

    def survey_class(self, preemptor: Preemptor) -> Hashable:
        """Equal for pods for which the same pods may be evicted, if they may use their nodes."""
        said = [each(preemptor) for each in self.classes]
        return preemptor.job.queue, self.inside, preemptor.task.shape.is_empty, *said


def rules_for(
    session: Session, setting: EvictionSetting, job: JobInfo, queue: Queue, *, inside: bool = False
) -> EvictionRules:
    """What may be evicted for a gang, the same for all gangs of a queue that hold nothing; `inside`: other pods of the gang itself."""
    extensions, shares = session.extensions, session.view.shares
    checks: Sequence[Extension[VictimCheck]] = extensions.preemptable
    classes: Sequence[Callable[[Preemptor], Hashable]] = extensions.preemptor_classes
    queues: Bools = np.zeros(len(shares.queues), dtype=np.bool_)
    queue_key: Callable[[Queue], SortKey] = _in_no_order
    if setting.reclaims:
        checks, classes = extensions.reclaimable, extensions.reclaimer_classes
        queues = shares.limits.reclaimable.copy()
        queues[shares.rows[queue.metadata.name]] = False
        queue_key = partial(session.answers.victim_queue_key, preemptor=queue)
    else:
        queues[job.row] = True
    lasts = extensions.lasting_classes.issuperset(classes)
    if setting.by_gang:  # what goes together is decided with the minimum of gangs
        checks = [
            Extension(each.tier, each.plugin, _all_of_them) if each.plugin == "gang" else each
            for each in checks
        ]
        if checks and not setting.reclaims:
            less = Extension[VictimCheck](-1, "priority", _of_less_important_gangs)
            checks = [less, *checks]
            classes = [*classes, lambda each: each.job.order_priority]
    own = job.key if inside else ""
    without = job.key if job.holding and not (setting.reclaims or inside) else ""
    return EvictionRules(setting, checks, classes, queues, without, own, queue_key, lasts)


def _in_no_order(_: Queue) -> SortKey:
    return ()


def _all_of_them(_: Preemptor, candidates: Candidates) -> Bools:
    return np.ones(len(candidates), dtype=np.bool_)


def _of_less_important_gangs(preemptor: Preemptor, candidates: Candidates) -> Bools:
    found: Bools = candidates.of_jobs(lambda job: job.order_priority) < preemptor.job.order_priority
    return found

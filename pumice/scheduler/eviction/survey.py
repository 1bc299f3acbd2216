"""Running pods that may be evicted for a pod on any node, and why others may not.

Plugins get each candidate as if it were the only one on its node. A pod that is refused then is refused in any case,
because plugins only become stricter with every further victim. So the answers are kept for all preemptors of the same
class as long as their queue has its turn, and many waiting gangs cost little more than one.
"""

from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.model.axis import PODS, SCORED_CPU, SCORED_MEMORY, Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor, WhySpared
from pumice.scheduler.model.jobs import JobInfo
from pumice.scheduler.model.running_pods import RunningTable
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.session import Session
from pumice.scheduler.session.victims import EvictionFailure, VictimAnswers, judge

_KEPT = 64
"""Surveys that are kept at most; each has some bytes for every running pod."""


class Survey(msgspec.Struct, frozen=True):
    """Running pods that an action may look at.

    Attributes:
        rows: Their rows in the table of running pods, ascending.
        is_open: Those that are preemptable, and whose eviction was not refused a moment ago.
        may: Those that may be evicted.
        judgement: What plugins say about those that are open.
        nodes: Nodes from which any of them may be evicted.
        finds_any: Whether there is such a node.
        moment: How many pods the session had evicted before.
    """

    running: RunningTable
    rows: Ints
    is_open: Bools
    may: Bools
    judgement: VictimAnswers
    nodes: Bools
    finds_any: bool
    moment: int

    def reaches(self, usable: Bools, rules: EvictionRules) -> bool:
        """Whether `victims` finds any."""
        if self.running.number(rules.without) >= 0:
            return bool(len(self.victims(usable, rules)))
        return bool((self.nodes & usable).any())

    def victims(self, usable: Bools, rules: EvictionRules) -> Ints:
        """Rows of the pods that may go from nodes that the pod may use that asks."""
        rows = self.rows[self.may]
        return rows[self._asked(rows, usable, rules)]

    def spared(
        self, usable: Bools, rules: EvictionRules, words: Mapping[str, WhySpared]
    ) -> EvictionFailure:
        """Count what speaks against evicting the pods that the action looked at; plugins say the words."""
        asked = self._asked(self.rows, usable, rules)
        is_refused = asked[self.is_open] & ~self.judgement.may
        by = _by_plugin(self.judgement, is_refused)
        return EvictionFailure(
            action=rules.setting.name,
            candidates=int(np.count_nonzero(asked)),
            allowed=int(np.count_nonzero(asked & self.may)),
            protected=int(np.count_nonzero(asked & ~self.is_open)),
            by={name: len(places) for name, places in by.items()},
            because={
                name: words[name](self.running, self.rows[self.is_open][places])
                for name, places in by.items()
                if name in words
            },
            gangs=int(np.count_nonzero(np.bincount(self.running.gang[self.rows[asked]])))
            if rules.setting.by_gang
            else 0,
        )

    def _asked(self, rows: Ints, usable: Bools, rules: EvictionRules) -> Bools:
        asked: Bools = usable[self.running.node[rows]] & self.running.used[rows]
        own = self.running.number(rules.without) if rules.without else -1
        if own >= 0:
            asked &= self.running.gang[rows] != own
        return asked


class Surveys:
    """The surveys of one action.

    Attributes:
        blind: What decides about the running pods that may go, for gangs for which none may from any node.
        told: Keys of gangs about which the session reports why evictions did not help.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.told = session.explained
        self.blind: set[Hashable] = set()
        self._kept: dict[Hashable, Survey] = {}
        self._spare: dict[Hashable, tuple[int, bool]] = {}
        self._spared: dict[Hashable, EvictionFailure] = {}
        self._queues: tuple[int, Ints] = (-1, np.zeros(0, dtype=np.int64))
        self._accepted: dict[Hashable, tuple[Bools, Sequence[JobInfo]]] = {}

    def begin_queue(self) -> None:
        """Another queue has its turn: what others lost or got makes other pods candidates for it."""
        moments = {each.moment for each in self._kept.values()}
        moments |= {moment for moment, _ in self._spare.values()}
        if moments - {len(self._session.committed.evicted)}:
            self.clear()

    def is_current(self, seen: Survey) -> bool:
        """Whether no pod was evicted since."""
        return seen.moment == len(self._session.committed.evicted)

    def of(
        self,
        preemptor: Preemptor,
        rules: EvictionRules,
        *,
        current: bool = False,
        tentative: bool = False,
    ) -> Survey:
        """Running pods, and which of them may go if no others do.

        Args:
            preemptor: A pod that asks; those for which `EvictionRules.survey_class` is the same share the answer.
            rules: What may be evicted.
            current: Whether the answer is not to be from before an eviction that was decided since.
            tentative: Whether decisions are in effect that may be undone, so that the answer is not kept.
        """
        key = rules.survey_class(preemptor)
        found = self._kept.get(key)
        if found is None or (current and not self.is_current(found)):
            found = _survey(self._session, preemptor, rules, self.accepted(rules)[0])
            if not tentative:
                if len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = found
        return found

    def may_help(self, preemptor: Preemptor, rules: EvictionRules) -> bool:
        """True if any pod may be evicted from a node that a pod may use."""
        seen = self.of(preemptor, rules)
        if not seen.finds_any:
            return False
        usable = self._session.suiting(preemptor.task, preemptor.queue.metadata.name)
        return seen.reaches(usable, rules)

    def are_spared(self, preemptor: Preemptor, rules: EvictionRules) -> bool:
        """Whether plugins spare all gangs; kept as surveys are: by the classes of pods of one action, until a pod is evicted."""
        key = rules.survey_class(preemptor)
        found = self._spare.get(key)
        if found is None:
            moment = len(self._session.committed.evicted)
            found = self._spare[key] = moment, self._are_all_spared(preemptor, rules)
        return found[1]

    def _are_all_spared(self, preemptor: Preemptor, rules: EvictionRules) -> bool:
        """Whether in each tier, or in any if all plugins must agree, a plugin tells at once that it spares all pods."""
        gangs = self.accepted(rules)[1]
        if not gangs:
            return True
        tells = self._session.extensions.spares_gangs
        spared, tiers = set[int](), set[int]()
        for each in rules.checks:
            tier = 0 if rules.setting.by_gang else each.tier
            tiers.add(tier)
            tell = tells.get(id(each.call))
            if tier not in spared and tell and tell(preemptor, gangs):
                spared.add(tier)
        return spared == tiers

    def note(
        self, asking: Sequence[Preemptor], helped: Sequence[Preemptor], rules: EvictionRules
    ) -> Hashable:
        """Note whether any pod may be evicted for pods of a gang, from whatever node, `helped` those for which not all are spared; what decides about it."""
        classes = frozenset([rules.survey_class(each) for each in asking])
        if not any(self.of(each, rules).finds_any for each in helped):
            self.blind.add(classes)
        return classes

    def note_spared(self, preemptor: Preemptor, rules: EvictionRules, lacks: str = "") -> None:
        """Note why evictions did not help a gang, and what it would lack with them; gangs with such pods share the first."""
        usable = self._session.suiting(preemptor.task, preemptor.queue.metadata.name)
        key = (rules.survey_class(preemptor), rules.without, usable.tobytes())
        if key not in self._spared:
            seen = self.of(preemptor, rules, current=True)
            words = self._session.extensions.why_spared
            self._spared[key] = seen.spared(usable, rules, words)
        found = self._spared[key]
        if preemptor.job.never_preempts or preemptor.task.never_preempts:
            found = replace(found, never=True)
        if lacks:
            found = replace(found, lacks=lacks)
        if found.candidates:
            self._session.spared.setdefault(preemptor.job.key, {})[rules.setting.name] = found

    def clear(self) -> None:
        """What was computed is not valid any more."""
        self._kept.clear()
        self._spare.clear()

    def accepted(self, rules: EvictionRules) -> tuple[Bools, Sequence[JobInfo]]:
        """Gangs whose running pods are candidates: whether each is one, by number, and those that are."""
        running, moment = self._session.view.running, len(self._session.touched.log)
        if self._queues[0] != moment:
            rows = [gang.row if gang else -1 for gang in running.gangs]
            self._queues = moment, np.array(rows, dtype=np.int64)
            self._accepted.clear()
        key = rules.inside, rules.queues.tobytes()
        found = self._accepted.get(key)
        if found is None:
            queues = self._queues[1]
            mask: Bools = rules.queues[queues] & (queues >= 0)
            if rules.inside:
                mask = np.arange(len(queues)) == running.number(rules.inside)
            gangs = [gang for each in mask.nonzero()[0].tolist() if (gang := running.gangs[each])]
            found = self._accepted[key] = mask, gangs
        return found


def _survey(
    session: Session, preemptor: Preemptor, rules: EvictionRules, accepted: Bools
) -> Survey:
    """Look at all running pods of gangs that are accepted."""
    running = session.view.running
    rows = _looked_at(session, preemptor, accepted)
    is_open: Bools = running.preemptable[rows]
    if rules.setting.reclaims:
        is_open &= running.runs[rows]
    if rules.setting.by_gang:
        protected = [
            gang is not None and gang.gang.says_preemptable is False for gang in running.gangs
        ]
        is_open &= ~np.array(protected, dtype=np.bool_)[running.gang[rows]]
    for key in session.state.pods.spared:
        task = session.state.tasks.get(key)
        if task is not None and task.row >= 0 and session.view.is_spared(task):
            is_open &= rows != task.row
    judgement = alone(session, rules, preemptor, rows[is_open])
    may = np.zeros(len(rows), dtype=np.bool_)
    may[is_open] = judgement.may
    nodes = np.zeros(len(session.view.rows), dtype=np.bool_)
    nodes[running.node[rows[may]]] = True
    moment = len(session.committed.evicted)
    finds_any = bool(may.any())
    return Survey(running, rows, is_open, may, judgement, nodes, finds_any, moment)


def alone(
    session: Session, rules: EvictionRules, preemptor: Preemptor, rows: Ints
) -> VictimAnswers:
    """What plugins say about pods, given by their rows, each as if it were the only one on its node."""
    candidates = _alone(session, rows)
    return judge(rules.checks, preemptor, candidates, every=rules.setting.by_gang)


def tell_most(session: Session, rules: EvictionRules) -> bool:
    """Whether in each tier a plugin says what the pods take at most that it lets go."""
    told = session.extensions.most_taken
    telling = {each.tier for each in rules.checks if id(each.call) in told}
    return telling == {each.tier for each in rules.checks}


def most_taken(session: Session, rules: EvictionRules, preemptor: Preemptor, rows: Ints) -> Ints:
    """What those of these pods take at most, by column, that plugins let go one after the other, where they `tell_most`."""
    told, candidates = session.extensions.most_taken, _alone(session, rows)
    tiers: dict[int, list[Ints]] = {}
    for each in rules.checks:
        if most := told.get(id(each.call)):
            tiers.setdefault(each.tier, []).append(most(preemptor, candidates))
    nothing = np.zeros(session.view.running.vectors.shape[1], dtype=np.int64)
    return sum([np.minimum.reduce(each) for each in tiers.values()], nothing)


def _alone(session: Session, rows: Ints) -> Candidates:
    running = session.view.running
    gangs = running.gang[rows]
    is_there = np.zeros(len(running.gangs), dtype=np.bool_)
    is_there[gangs] = True
    numbers = np.flatnonzero(is_there)
    places = np.zeros(len(running.gangs), dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    named = [gang for number in numbers.tolist() if (gang := running.gangs[number])]
    return Candidates(running, rows, named, places[gangs])


def may_go(
    session: Session,
    rules: EvictionRules,
    preemptor: Preemptor,
    tasks: Sequence[TaskInfo],
    bundle: Ints | None = None,
) -> Bools:
    """Which pods plugins let go, each after those before it: those of its node, which stand together, or with `bundle` (see `Candidates`) all."""
    if not tasks:
        return np.zeros(0, dtype=np.bool_)
    running, known = session.view.running, session.state.jobs
    holders = [known[task.job].holder(task) for task in tasks]
    jobs = {holder.key: holder for holder in holders}
    places = {key: place for place, key in enumerate(jobs)}
    job: Ints = np.array([places[holder.key] for holder in holders], dtype=np.int64)
    rows: Ints = np.array([task.row for task in tasks], dtype=np.int64)
    candidates = Candidates(
        running, rows, list(jobs.values()), job, running.node[rows], bundle=bundle
    )
    return judge(rules.checks, preemptor, candidates, every=rules.setting.by_gang).may


def _looked_at(session: Session, preemptor: Preemptor, accepted: Bools) -> Ints:
    running = session.view.running
    count = len(running.tasks)
    if not accepted.any():
        return np.zeros(0, dtype=np.int64)
    mask: Bools = running.used[:count] & (running.node[:count] >= 0)
    mask &= accepted[running.gang[:count]]
    if preemptor.task.shape.is_empty:
        asked = running.vectors[:count].copy()
        asked[:, [PODS, SCORED_CPU, SCORED_MEMORY]] = 0
        mask &= ~asked.any(axis=1)
    return np.flatnonzero(mask)


def _by_plugin(judgement: VictimAnswers, refused: Bools) -> Mapping[str, Ints]:
    """Which of the refused each plugin refuses; under an empty name where no plugin has an answer."""
    places = {
        name: np.flatnonzero(refused & (judgement.refused_by == place))
        for place, name in [*enumerate(judgement.plugins), (-1, "")]
    }
    return {name: found for name, found in places.items() if len(found)}

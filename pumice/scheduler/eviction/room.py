"""How many pods of a gang the nodes hold once some others have left, by arithmetic: a bound for every way of placing them."""

from collections.abc import Callable, Sequence

import numpy as np

from pumice.scheduler.eviction.bundles import VictimBundle
from pumice.scheduler.eviction.settings import EvictionRules
from pumice.scheduler.eviction.survey import Surveys, most_taken
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Preemptor
from pumice.scheduler.model.free_room import Needs, least, places
from pumice.scheduler.model.rows import Rows
from pumice.scheduler.session.node_ranking import GroupPart
from pumice.scheduler.session.session import Session
from pumice.scheduler.view import SessionView


class Room:
    """Places on nodes, kept current while bundles go and are put back."""

    def __init__(
        self, rows: Rows, row_of: Callable[[str], int], wanted: Sequence[GroupPart]
    ) -> None:
        """Count the places that are there, terminating pods left out."""
        self.wanted = wanted
        self._row_of = row_of
        self._columns = sorted({column for each in wanted for column, _ in each.needs})
        self._free: Ints = np.stack([rows.future_idle(column) for column in self._columns], axis=1)
        position = {column: place for place, column in enumerate(self._columns)}
        self._needs = [
            tuple((position[column], amount) for column, amount in each.needs) for each in wanted
        ]
        self._counts = self._counted(self._free)
        self.totals: list[int] = self._counts.sum(axis=1).tolist()
        self._gone: dict[str, int] = {}

    def _counted(self, free: Ints) -> Ints:
        """The places by kind and row, with so much that is free."""
        counts = places(self._needs, free)
        counts[~np.stack([each.nodes for each in self.wanted])] = 0
        return counts

    @property
    def nodes(self) -> Bools:
        """The nodes on which any of the places count."""
        found: Bools = np.logical_or.reduce([each.nodes for each in self.wanted])
        return found

    @property
    def is_enough(self) -> bool:
        """Whether all the places are there."""
        return self.shortage(self.totals) is None

    def shortage(self, totals: Sequence[int]) -> tuple[int, int] | None:
        """Of the kind of pods of which most lack a place: how many have one, and how many need one; None if none lacks any."""
        pairs = [(total, each.required) for total, each in zip(totals, self.wanted, strict=True)]
        worst = max(pairs, key=lambda pair: pair[1] - pair[0])
        return worst if worst[0] < worst[1] else None

    def most(self, nodes: Ints, vectors: Ints) -> list[int]:
        """The places that there would be, by kind, if pods left their nodes, which are given by row, and what each takes by column."""
        free = self._free.copy()
        np.add.at(free, nodes, vectors[:, self._columns])
        found: list[int] = self._counted(free).sum(axis=1).tolist()
        return found

    def add(self, bundle: VictimBundle) -> None:
        """Let the pods of a bundle go, those left out that have gone with another."""
        self._change(bundle, 1)

    def put_back(self, bundle: VictimBundle) -> None:
        """Undo `add`."""
        self._change(bundle, -1)

    def _change(self, bundle: VictimBundle, step: int) -> None:
        for task in bundle.tasks:
            row = self._row_of(task.node)
            before = self._gone.get(task.key, 0)
            self._gone[task.key] = before + step
            if min(before, before + step):
                continue  # it goes with another bundle, too
            free, vector = self._free[row], task.shape.vector
            for place, column in enumerate(self._columns):
                free[place] += step * int(vector[column])
            for kind, needs in enumerate(self._needs):
                if self.wanted[kind].nodes[row]:
                    count = min(max(int(free[at]), 0) // max(amount, 1) for at, amount in needs)
                    self.totals[kind] += count - int(self._counts[kind, row])
                    self._counts[kind, row] = count


def gets_fewer(
    session: Session,
    surveys: Surveys,
    rules: EvictionRules,
    asking: Sequence[Preemptor],
    count: int,
) -> bool:
    """Whether pods of a gang, given by one of each kind, certainly get fewer places than this, where plugins `tell_most`."""
    needs = least(list(dict.fromkeys(each.task.shape for each in asking)))
    usable: Bools = np.logical_or.reduce(
        [session.suiting(each.task, each.job.queue) for each in asking]
    )
    victims: list[Ints] = []
    taken: list[Ints] = []
    for each in {rules.survey_class(each): each for each in asking}.values():
        victims.append(surveys.of(each, rules).victims(usable, rules))
        taken.append(most_taken(session, rules, each, victims[-1]))
    limits = np.concatenate(victims), np.sum(taken, axis=0)
    return most_places(session.view, needs, usable, *limits, count) < count


def most_places(
    view: SessionView, needs: Needs, usable: Bools, victims: Ints, taken: Ints, enough: int
) -> int:
    """The most places that pods get one after the other while others go, those that are free included; at least `enough` if there may be so many.

    Args:
        view: The nodes and the running pods.
        needs: What each of the pods takes at least.
        usable: The nodes that they may use.
        victims: Rows of the running pods that may go from these.
        taken: What those of them take at most that go, by column.
        enough: How many places are asked for.
    """
    columns = [column for column, _ in needs]
    amounts = np.array([max(amount, 1) for _, amount in needs], dtype=np.int64)
    free = np.stack([view.rows.future_idle(column) for column in columns], axis=1)
    np.maximum(free, 0, out=free)
    now = (free // amounts).min(axis=1)
    left = free.copy()
    np.add.at(left, view.running.node[victims], view.running.vectors[victims][:, columns])
    more = np.minimum((left // amounts).min(axis=1) - now, enough)
    more[~usable] = 0
    nodes = np.flatnonzero(more)
    found = int(now[usable].sum())
    gained = min(enough - found, int(more.sum()))
    steps = np.arange(int(more.max(initial=0)) + 1)
    for place, column in enumerate(columns):
        if gained * int(amounts[place]) <= taken[column]:
            continue  # enough for all of them, on whichever nodes
        held = (now[nodes, np.newaxis] + steps) * amounts[place] - free[nodes, place, np.newaxis]
        lacks = np.diff(np.maximum(held, 0), axis=1)[steps[1:] <= more[nodes, np.newaxis]]
        if len(lacks) > gained:
            lacks = np.partition(lacks, gained - 1)[:gained]
        lacks.sort()
        gained = min(gained, int(np.count_nonzero(lacks.cumsum() <= taken[column])))
    return found + max(gained, 0)

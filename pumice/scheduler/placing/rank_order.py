"""The nodes of a domain in the order in which pods that follow each other try them: neighbours stay near to each other.

The first pod goes into the lowest domain that can take the most pods, and each further one as near as possible to the one
before it: into the same lowest domain, else into the one around it, and so on. So consecutive ranks are contiguous, and few
of them talk to each other across a switch.
"""

from collections.abc import Callable, Iterator

import numpy as np

from pumice.scheduler.model.axis import Floats, Ints
from pumice.scheduler.model.free_room import least
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.session.node_ranking import GroupOf, NodeRanking
from pumice.scheduler.session.node_values import NOWHERE
from pumice.scheduler.session.session import Session
from pumice.scheduler.topology.levels import SideBySide
from pumice.scheduler.topology.tree import Domain


class RankOrder:
    """The order of nodes in one domain, for pods one after the other."""

    def __init__(
        self,
        session: Session,
        domain: Domain,
        wanted: int,
        fullness: Callable[[SideBySide], Floats],
        last: int = NOWHERE,
    ) -> None:
        """Begin with none of the wanted pods placed in a domain.

        Of domains that take equally many pods the one is first that is best by its fullness; `last` is the row of a pod near which the first one is to be.
        """
        self._session = session
        self._levels = session.levels
        self._domain = domain
        self._wanted = wanted
        self._fullness = fullness
        self._last = last

    def best(self, task: TaskInfo, ranking: NodeRanking, group: GroupOf) -> int:
        """Row of the best node for the next pod; `NOWHERE` if none has room now."""
        return self._best(task, ranking, lambda rows: ranking.best(task, group, rows))

    def best_later(self, task: TaskInfo, ranking: NodeRanking) -> int:
        """Row of the best node for the next pod, which has to wait for terminating pods; `NOWHERE` if there is none."""
        if not self._session.touched.releases:
            return NOWHERE
        return self._best(task, ranking, lambda rows: ranking.best_later(task, rows), later=True)

    def has(self, row: int) -> bool:
        """Whether a ready node is in the domain."""
        return bool(self._levels.tree.mask(self._domain)[row])

    def placed(self, row: int) -> None:
        """Note the row of the node that the next pod got."""
        self._last = row
        self._wanted -= 1

    def _best(
        self,
        task: TaskInfo,
        ranking: NodeRanking,
        best: Callable[[Ints], int],
        *,
        later: bool = False,
    ) -> int:
        if not self._domain.children:
            return best(self._levels.rows(self._domain))
        counts = self._session.places.counts(least((task.shape,)), later=later)
        for rows in self.parts(counts * ranking.pods.allowed):
            row = best(rows)
            if row != NOWHERE:
                return row
        return NOWHERE

    def parts(self, counts: Ints) -> Iterator[Ints]:
        """Rows of nodes, the nearest to the last pod first; nodes of one part are equally near.

        `counts` is an upper bound on the pods that each row can take; domains that can take none are left out.
        """
        inner: Domain | None = None
        for domain in reversed(self._path()):
            yield from self._inside(domain, counts, inner)
            inner = domain

    def _path(self) -> list[Domain]:
        """The domain, and those inside it that are around the last pod, from the outermost inwards."""
        path = [self._domain]
        while self._last != NOWHERE and path[-1].children:
            children = self._levels.children(path[-1])
            place = int(children.codes[self._last])
            if place < 0:
                break
            path.append(children.domains[place])
        return path

    def _inside(self, domain: Domain, counts: Ints, tried: Domain | None) -> Iterator[Ints]:
        """Rows of a domain, without those of a domain in it that were tried already."""
        ahead: list[Domain | Ints] = [domain]
        while ahead:
            each = ahead.pop()
            if not isinstance(each, Domain) or not each.children:
                yield self._levels.rows(each) if isinstance(each, Domain) else each
                continue
            children, rows = self._levels.children(each), self._levels.rows(each)
            own = rows[children.codes[rows] < 0]
            stays = self._last != NOWHERE and tried is None and self._last in own
            parts = [part for part in self._order(children, counts) if part is not tried]
            ahead += [own, *reversed(parts)] if not stays else [*reversed(parts), own]
            tried = None

    def _order(self, domains: SideBySide, counts: Ints) -> list[Domain]:
        """The domains that can take a pod: those that take the most first, then the fuller ones, then by name."""
        room = np.minimum(domains.sums(counts), max(self._wanted, 1))
        order = np.lexsort((-self._fullness(domains), -room))  # stable: the name decides last
        return [domains.domains[place] for place in order[room[order] > 0].tolist()]

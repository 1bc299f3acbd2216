"""cdp: cool-down protection, which spares pods that were placed a moment ago.

A pod says for how long by its label, else its annotation, `volcano.sh/cooldown-time`. The time counts from when its condition
`PodScheduled` became true, and for a pod that runs; one that is only bound has done no work yet.
"""

import numpy as np

from pumice.api import keys
from pumice.api.json_words import quoted
from pumice.api.meta import format_time
from pumice.scheduler.model.axis import Bools, Ints
from pumice.scheduler.model.candidates import Candidates, Preemptor, any_preemptor
from pumice.scheduler.model.running_pods import RunningTable
from pumice.scheduler.registrar import Registrar
from pumice.scheduler.specs import PluginSpec
from pumice.scheduler.view import SessionView
from pumice.scheduler.waiting.parked import Cause


class CoolDownProtection:
    """Spares pods within their cool-down."""

    def open(self, session: SessionView, register: Registrar) -> None:
        """Register the checks, and have gangs that wait look again when the next cool-down ends."""
        self._now = session.now
        self._warn(session)
        until = session.running.cools_until
        ends = until[until > session.now]
        if len(ends) and any(True for _ in session.unplaced):
            session.wake_at(float(ends.min()), changes=Cause.VICTIMS)
        register.preemptable(self._has_cooled_down, by=any_preemptor, why=_why)
        register.reclaimable(self._has_cooled_down, by=any_preemptor, why=_why)

    def _has_cooled_down(self, _: Preemptor, candidates: Candidates) -> Bools:
        found: Bools = ~(candidates.cools_until > self._now)  # NaN protects nothing
        return found

    def _warn(self, session: SessionView) -> None:
        """Tell the owners of gangs whose pods name a cool-down that cannot be read, of each gang the first such text."""
        running = session.running
        texts: dict[str, str] = {}
        for row in np.flatnonzero(np.isnan(running.cools_until)).tolist():
            task = running.tasks[row]
            if task is not None and task.cool_down is not None:
                text = task.cool_down.text
                texts[task.job] = min(text, texts.get(task.job, text))
        for gang, text in texts.items():
            message = (
                f"{keys.COOLDOWN_TIME} of a pod is {quoted(text)}, which protects nothing from eviction; "
                "write a duration such as 90s, 10m or 1h30m"
            )
            session.warn(session.jobs[gang], "InvalidCoolDown", message)


def _why(running: RunningTable, rows: Ints) -> str:
    """The cool-down that ends first."""
    until = running.cools_until[rows]
    end = float(until.min())
    tasks = [running.tasks[row] for row in rows[until == end].tolist()]
    first = min((task for task in tasks if task is not None), key=lambda task: task.key)
    assert first.cool_down is not None
    which = "the first of their cool-downs" if len(rows) > 1 else "the cool-down"
    return f"{which} ({first.cool_down.text}, of {first.key}) ends at {format_time(end)}"


SPEC = PluginSpec(
    name="cdp",
    summary="Spares pods that were placed less long ago than their cool-down, which they name themselves.",
    build=lambda _: CoolDownProtection(),
)

"""shuffle: evict pods that plugins select, without a preemptor."""

from itertools import groupby

from pumice.scheduler.arguments import Arguments
from pumice.scheduler.model.running_pods import VICTIMS
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import Extension, VictimPoint
from pumice.scheduler.results import Event
from pumice.scheduler.session.session import Session
from pumice.scheduler.specs import ActionSpec


def run(session: Session, _arguments: Arguments) -> None:
    """Evict the pods that the first tier selects that selects any."""
    victims: dict[str, TaskInfo] = {}
    chosen_by: dict[str, str] = {}
    for _, tier in groupby(session.extensions.victim_tasks, key=lambda each: each.tier):
        for each in tier:
            for task in _chosen(session, each):
                if task.status in VICTIMS and task.job and not session.view.is_spared(task):
                    victims.setdefault(task.key, task)
                    chosen_by.setdefault(task.key, each.plugin)
        if victims:
            break
    statement = session.statement()
    for key in sorted(victims):
        task = victims[key]
        if not all(each.call(task) for each in session.extensions.evictable):
            continue
        statement.evict(task)
        message = f"evicted because plugin {chosen_by[key]} chose it (shuffle)"
        session.events.append(Event("Pod", task.namespace, task.name, "Normal", "Evicted", message))
    session.commit(statement)


def _chosen(session: Session, each: Extension[VictimPoint]) -> list[TaskInfo]:
    """The pods that a plugin selects, unless it has selected some recently."""
    state, point = session.state, each.call
    before = state.chose_at.get(each.plugin)
    if before is not None and 0.0 <= session.now - before < point.every:
        session.view.wake_at(before + point.every)
        return []
    chosen = list(point.choose())
    if point.every and chosen:
        state.chose_at[each.plugin] = session.now
        session.view.wake_at(session.now + point.every)
    return chosen


SPEC = ActionSpec(
    name="shuffle",
    summary="Evicts pods that plugins name, so that they are placed again elsewhere.",
    run=run,
    needs="victim_tasks",
)

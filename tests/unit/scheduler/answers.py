"""What the plugins of a configuration answer about one pod: which nodes, how good, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pumice.scheduler import options as opening
from pumice.scheduler.model.tasks import TaskInfo
from pumice.scheduler.points import PodClass
from pumice.scheduler.session.session import Session
from tests.unit.scheduler.scenarios import NOW, Scenario


@dataclass
class Answers:
    """Answers by node, in the order of their names.

    Attributes:
        allowed: Whether every filter lets the pod use it.
        score: Sum of all scores, whether allowed or not.
    """

    allowed: list[bool]
    score: list[float]


def open_session(scenario: Scenario) -> Session:
    """A session on the scenario as it is."""
    scenario.state.settle()
    return opening.open_session(scenario.state, scenario.config, NOW)


def ask(
    scenario: Scenario, pod: str, queue: str = "default", session: Session | None = None
) -> Answers:
    """Ask all filters and scorers about a pod of the scenario, as if it paid from a queue."""
    session = session or open_session(scenario)
    task: TaskInfo = scenario.state.tasks[pod]
    rows = session.view.rows
    allowed = np.ones(len(rows), dtype=np.bool_)
    pods = PodClass(task.shape, queue, allowed, peers=scenario.state.peers.class_of(task))
    for filtering in session.extensions.node_filter:
        verdict = filtering.call.judge(pods, rows)
        if verdict is not None:
            allowed &= verdict.codes == 0
    total = np.zeros(len(rows))
    for scoring in session.extensions.node_score:
        score = scoring.call.score(pods, rows)
        if score is not None:
            total = total + score
    for filters in session.extensions.domain_filter:
        found = filters.call(pods)
        if found is not None:
            allowed &= found.column() == 0
    for scores in session.extensions.domain_score:
        values = scores.call.build(pods)
        if values is not None:
            total = total + values.column()
    return Answers(allowed.tolist(), total.tolist())


def queue_rules(
    aff_req: Sequence[str] = (),
    aff_pref: Sequence[str] = (),
    anti_req: Sequence[str] = (),
    anti_pref: Sequence[str] = (),
) -> dict[str, object]:
    """`spec.affinity` of a queue, as manifests spell it."""
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    return {
        "nodeGroupAffinity": {required: list(aff_req), preferred: list(aff_pref)},
        "nodeGroupAntiAffinity": {required: list(anti_req), preferred: list(anti_pref)},
    }

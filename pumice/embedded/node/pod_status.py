"""The status of a pod, as kubelet writes it.

Pure: states of containers in, status out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.api.meta import Raw


@dataclass(slots=True)
class ContainerRun:
    """One container of a pod.

    Attributes:
        manifest: The container in the pod's spec.
        is_sidecar: Whether it is an init container that goes on.
        state: `waiting`, `running` or `terminated`, with its fields.
        last: The state of the run before.
        restarts: How often it was started again.
        is_over: Whether it has ended for good.
    """

    manifest: Raw
    is_sidecar: bool = False
    state: Raw = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: Raw = field(default_factory=dict)
    restarts: int = 0
    is_over: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.manifest["name"])

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return "running" in self.state

    @property
    def code(self) -> int | None:
        """The exit code of a container that has ended."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def status(self) -> Raw:
        """Its entry in the pod's status."""
        found = {
            "name": self.name,
            "image": self.manifest.get("image", ""),
            "imageID": "",
            "ready": self.runs,
            "started": self.runs,
            "restartCount": self.restarts,
            "state": self.state,
        }
        if self.last:
            found["lastState"] = self.last
        return found


def phase_of(
    sidecars: Sequence[ContainerRun], containers: Sequence[ContainerRun], *, is_initialised: bool
) -> str:
    """The phase of a pod that nothing has ended.

    Args:
        sidecars: Its init containers; of these, only sidecars go on.
        containers: Its containers.
        is_initialised: Whether the init containers have done their work.
    """
    begun = [
        each for each in containers if each.runs or each.restarts or "terminated" in each.state
    ]
    if not is_initialised or len(begun) < len(containers):
        return "Pending"
    if any(each.runs for each in sidecars):
        return "Running"
    if all(each.is_over for each in containers):
        return "Failed" if any(each.code for each in containers) else "Succeeded"
    return "Running"


def status_of(
    before: Raw,
    init: Sequence[ContainerRun],
    containers: Sequence[ContainerRun],
    moment: str,
    *,
    address: str,
    is_initialised: bool,
    verdict: Raw,
) -> Raw:
    """A pod's status.

    Args:
        before: The one that it has.
        init: Its init containers.
        containers: Its containers.
        moment: Now.
        address: Its address; empty before it has one.
        is_initialised: Whether the init containers have done their work.
        verdict: Phase, reason and message where something has ended the pod.
    """
    status = dict(before)
    status["phase"] = phase_of(init, containers, is_initialised=is_initialised)
    status.setdefault("startTime", moment)
    status["hostIP"] = "127.0.0.1"
    if address:
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if init:
        status["initContainerStatuses"] = [each.status() for each in init]
    status["containerStatuses"] = [each.status() for each in containers]
    status |= verdict
    ready = all(each.runs for each in containers) and not verdict
    done = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(status["phase"], "")
    conditions = {
        "Initialized": (is_initialised, "" if is_initialised else "ContainersNotInitialized"),
        "Ready": (ready, done or "ContainersNotReady"),
        "ContainersReady": (ready, done or "ContainersNotReady"),
    }
    old = {each.get("type"): each for each in before.get("conditions") or ()}
    for kind, (true, reason) in conditions.items():
        value = "True" if true else "False"
        known = old.get(kind)
        if known is None or known.get("status") != value:
            known = {"type": kind, "status": value, "lastTransitionTime": moment}
        else:
            known = {key: text for key, text in known.items() if key != "reason"}
        old[kind] = known | ({"reason": reason} if not true and reason else {})
    status["conditions"] = list(old.values())
    return status


def terminated(code: int, number: int, begun: str, ended: str, reason: str, message: str) -> Raw:
    """The state of a container that has ended."""
    found: Raw = {"exitCode": code, "reason": reason, "startedAt": begun, "finishedAt": ended}
    if number:
        found["signal"] = number
    if message:
        found["message"] = message
    return {"terminated": found}

"""Modes of the ssh key files, by the users who read them.

OpenSSH refuses a private key that its own user owns and others may read. Files of a Secret belong to root, so root
needs mode 0600, another user 0644, or 0440 where the pod's fsGroup lets the group read. An fsGroup adds 0440 to any
mode, so in a pod with an fsGroup no mode works for root.
"""

from collections.abc import Iterator

from pumice.api.fields import FieldError
from pumice.api.jobs import Job
from pumice.api.meta import Raw
from pumice.api.raw import object_in, objects_in, text_in

ROOTS_PATH = "/root/.ssh"

ROOT_MODE = 0o600
"""Mode for root; other users cannot read it."""

_OTHERS = 0o644
_GROUP = 0o440


def mode_of_path(path: str) -> int:
    """The mode by the path alone, as in Volcano: only root can read root's home directory."""
    return ROOT_MODE if path == ROOTS_PATH else _OTHERS


def modes(spec: Raw, path: str) -> tuple[int, dict[str, int]]:
    """The mode for the first container, and the modes of containers that need another one.

    Returns:
        The mode, and the different modes by name of container or init container.
    """
    pod = _context(spec)
    first: int | None = None
    others: dict[str, int] = {}
    for kind in ("containers", "initContainers"):
        for name, container in _containers(spec, kind):
            mode = _mode(_context(container), pod, path)
            if first is None:
                first = mode
            elif mode != first:
                others[name] = mode
    return (_mode({}, pod, path) if first is None else first), others


def group_warnings(job: Job, path: str) -> list[FieldError]:
    """Warn if an fsGroup makes root's key readable for a group."""
    warnings = []
    for position, task in enumerate(job.tasks):
        spec = task.pod_spec()
        if not _has_group(spec):
            continue
        pod = _context(spec)
        roots = [
            name
            for name, container in _containers(spec, "containers")
            if _mode(_context(container), pod, path) == ROOT_MODE
        ]
        if roots:
            text = (
                f'Kubernetes lets this group read the files of Secrets, and in container "{roots[0]}" OpenSSH '
                "refuses a private key of root's that others may read; leave fsGroup out, or run the "
                "container as another user"
            )
            where = f"spec.tasks[{position}].template.spec.securityContext.fsGroup"
            warnings.append(FieldError(where, text, "JOB-PLUGIN-SECRET"))
    return warnings


def _mode(own: Raw, pod: Raw, path: str) -> int:
    if _is_roots(own, pod, path):
        return ROOT_MODE
    return _OTHERS if pod.get("fsGroup") is None else _GROUP


def _is_roots(own: Raw, pod: Raw, path: str) -> bool:
    """True if root runs a container, as far as its spec says; otherwise the path decides."""
    for context in (own, pod):
        user = context.get("runAsUser")
        if isinstance(user, int) and not isinstance(user, bool):
            return user == 0
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True:
        return False
    return path == ROOTS_PATH


def _has_group(spec: Raw) -> bool:
    return _context(spec).get("fsGroup") is not None


def _containers(spec: Raw, kind: str) -> Iterator[tuple[str, Raw]]:
    for container in objects_in(spec, kind):
        yield text_in(container, "name"), container


def _context(owner: Raw) -> Raw:
    return object_in(owner, "securityContext")

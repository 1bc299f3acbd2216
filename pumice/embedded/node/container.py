"""Become a container: a root of its own, the pod's volumes in it, exactly its environment, its user; then its program.

Each function runs in a process that the node's first process has forked, and that ends by becoming another program.
"""

import contextlib
import fcntl
import os
import resource
import signal
import socket
import termios
from typing import Any, NoReturn

from pumice.embedded.node import syscalls
from pumice.embedded.node.root import Root, source_of

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def become(
    spec: dict[str, Any], sandbox: list[tuple[int, int]], descriptors: list[int]
) -> NoReturn:
    """Become a container's first process, in a PID namespace that is new already.

    Args:
        spec: What the node's `start` takes.
        sandbox: The pod's namespaces: descriptor and kind of each.
        descriptors: Where its output goes, and `cgroup.procs` of its cgroups.

    Raises:
        OSError: Something cannot be made, or there is no such program.
    """
    output, *cgroups = descriptors
    for each in cgroups:
        os.write(each, b"0")
    for descriptor, kind in sandbox:
        syscalls.setns(descriptor, kind)
    syscalls.unshare(syscalls.NEW_MOUNT)
    syscalls.make_private()
    root = Root(spec["scratch"], spec["layers"], spec["size"])
    root.build(spec["mounts"], spec["folder"], is_read_only=spec["is_root_read_only"])
    for mount in spec["mounts"]:
        _show(root, mount, spec["hidden"])
    syscalls.pivot(root.path)
    os.chdir(spec["folder"])
    null = os.open("/dev/null", os.O_RDONLY)
    _execute(spec, (null, output, output))


def join(spec: dict[str, Any], first: int, descriptors: list[int]) -> NoReturn:
    """Run a further program in a container, as `kubectl exec` does.

    Args:
        spec: What the node's `execute` takes.
        first: The container's first process.
        descriptors: Its standard input, output and error, or the socket that gets the other end of its terminal; then `cgroup.procs` of the container's
            cgroups.
    """
    count = 1 if spec["tty"] else 3
    standard, cgroups = descriptors[:count], descriptors[count:]
    kinds = {
        "net": syscalls.NEW_NET,
        "uts": syscalls.NEW_UTS,
        "ipc": syscalls.NEW_IPC,
        "pid": syscalls.NEW_PID,
        "mnt": syscalls.NEW_MOUNT,
    }
    opened = [(os.open(f"/proc/{first}/ns/{name}", os.O_RDONLY), kinds[name]) for name in kinds]
    for descriptor, kind in opened:
        syscalls.setns(descriptor, kind)
    os.chdir(spec["folder"])
    child = os.fork()  # in the container's PID namespace
    if child:
        _forward(child)
    for each in cgroups:
        os.write(each, b"0")
    os.setsid()
    if spec["tty"]:
        standard = [_terminal(spec, standard[0])] * 3
    _execute(spec, (standard[0], standard[1], standard[2]), ends_with_parent=True)


def _terminal(spec: dict[str, Any], channel: int) -> int:
    """Make a terminal in the container, where programs find its name, and send its other end over a socket."""
    ours, theirs = os.openpty()
    if spec["changes_user"]:
        os.fchown(theirs, spec["user"], -1)
    with socket.socket(fileno=channel) as sender:
        socket.send_fds(sender, [b"+"], [ours])
    os.close(ours)
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    return theirs


def _forward(child: int) -> NoReturn:
    """Wait for a process, and end as it did."""
    os.closerange(3, 1 << 16)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _show(root: Root, mount: dict[str, Any], hidden: str) -> None:
    try:
        source = source_of(mount)
    except OSError as error:
        what = f"{mount['path'] or mount['base']}: {error.strerror}"
        raise OSError(error.errno, f"volume {mount['volume']}: {what}") from None
    at, is_own = f"/proc/self/fd/{source}", bool(mount["own"])
    try:
        root.show(at, mount["target"], is_read_only=mount["is_read_only"], is_own=is_own)
        if not is_own:
            root.hide(hidden, os.readlink(at), mount["target"])
    finally:
        os.close(source)


def _execute(
    spec: dict[str, Any], standard: tuple[int, int, int], *, ends_with_parent: bool = False
) -> NoReturn:
    """Become a user and a program."""
    for limited, limit in spec["limits"].items():
        resource.setrlimit(getattr(resource, limited), (limit, limit))
    environment = {"PATH": PATH, "HOSTNAME": socket.gethostname(), **spec["environment"]}
    name, group, home = _account(spec["user"])
    environment.setdefault("HOME", home)
    own = group if spec["group"] is None else spec["group"]
    if spec["changes_user"]:
        os.setgroups(sorted({own, *spec["groups"], *_groups_of(name)}))
        syscalls.drop_capabilities(set(spec["capabilities"]))
        os.setresgid(own, own, own)
        os.setresuid(spec["user"], spec["user"], spec["user"])
    else:
        syscalls.drop_capabilities(set(spec["capabilities"]))
    if ends_with_parent:  # not before, since a change of the user takes it back
        syscalls.end_with_parent()
    if spec["no_new_privileges"]:
        syscalls.forbid_new_privileges()
    os.umask(0o022)
    # Above the standard ones first, since one may lie where another is to go.
    high = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in standard]
    for number, each in enumerate(high):
        os.dup2(each, number)
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    command = spec["command"]
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise OSError(error.errno, f'exec: "{command[0]}": {_why(error, command[0])}') from None


def _why(error: OSError, program: str) -> str:
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return "executable file not found in $PATH"
    return str(error.strerror).lower()


def _account(user: int) -> tuple[str, int, str]:
    """Name, group and home of a user, as the container's root has them."""
    with contextlib.suppress(OSError), open("/etc/passwd", "rb") as file:
        for line in file:
            parts = line.decode(errors="replace").rstrip("\n").split(":")
            if len(parts) > 5 and parts[2] == str(user) and parts[3].isdecimal():
                return parts[0], int(parts[3]), parts[5] or "/"
    return "", 0, "/"


def _groups_of(name: str) -> list[int]:
    found = []
    with contextlib.suppress(OSError), open("/etc/group", "rb") as file:
        for line in file:
            parts = line.decode(errors="replace").rstrip("\n").split(":")
            if name and len(parts) > 3 and name in parts[3].split(",") and parts[2].isdecimal():
                found.append(int(parts[2]))
    return found

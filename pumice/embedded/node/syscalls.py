"""System calls of Linux that Python lacks.

The first process of a node imports it. So it has the standard library only, as all files that `init` imports.
"""

import ctypes
import os

NEW_MOUNT = 0x00020000
NEW_UTS = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NET = 0x40000000

_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV = 1, 2, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_OPENAT2, _MOUNT_SETATTR = 437, 442  # the same on all architectures
_RESOLVE_NO_MAGICLINKS, _RESOLVE_BENEATH, _RESOLVE_IN_ROOT = 0x02, 0x08, 0x10
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 24, 38
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(kind: str, target: str, options: str = "") -> None:
    """Mount a new file system."""
    result = _libc.mount(
        kind.encode(), os.fsencode(target), kind.encode(), 0, os.fsencode(options) or None
    )
    _check(result, f"mount {kind} at {target}")


def bind(source: str, target: str, *, recursive: bool = False) -> None:
    """Show a file or a folder at a second place."""
    flags = _BIND | (_RECURSIVE if recursive else 0)
    result = _libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None)
    _check(result, f"bind {source} at {target}")


def make_private() -> None:
    """Let no mount of this namespace appear elsewhere."""
    _check(_libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None), "make mounts private")


def read_only(target: str) -> None:
    """Let a mount, and all below it, be only read."""
    _set_attributes(target, _MOUNT_ATTR_RDONLY)


def forbid_devices(target: str) -> None:
    """Let no device be opened in a mount, and all below it, and no program take its owner's rights."""
    _set_attributes(target, _MOUNT_ATTR_NODEV | _MOUNT_ATTR_NOSUID)


def _set_attributes(target: str, attributes_set: int) -> None:
    attributes = (ctypes.c_uint64 * 4)(attributes_set, 0, 0, 0)
    result = _libc.syscall(
        _MOUNT_SETATTR,
        _AT_FDCWD,
        os.fsencode(target),
        _AT_RECURSIVE,
        attributes,
        ctypes.sizeof(attributes),
    )
    _check(result, f"set attributes of {target}")


def unmount(target: str) -> None:
    """Take a mount away, at once for everybody who looks and later for those who use it."""
    _check(_libc.umount2(os.fsencode(target), _DETACH), f"unmount {target}")


def pivot(root: str) -> None:
    """Make a mount the root, and take the former root away."""
    os.chdir(root)
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), f"pivot to {root}")
    unmount(".")
    os.chdir("/")


def open_inside(folder: int, path: str, flags: int, *, as_root: bool) -> int:
    """Open a path below a folder, out of which no symbolic link leads.

    Args:
        folder: Descriptor of the folder.
        path: The path.
        flags: As of `os.open`.
        as_root: Whether absolute links start at the folder; otherwise they are refused.
    """
    resolve = (_RESOLVE_IN_ROOT if as_root else _RESOLVE_BENEATH) | _RESOLVE_NO_MAGICLINKS
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, resolve)
    name = os.fsencode(path.lstrip("/") or ".")
    return _check(_libc.syscall(_OPENAT2, folder, name, how, ctypes.sizeof(how)), path)


def end_with_parent() -> None:
    """Let this process be killed when the thread that made it ends."""
    _check(_libc.prctl(_PDEATHSIG, 9, 0, 0, 0), "prctl")


def forbid_new_privileges() -> None:
    """Let no program of this process have more rights than its caller, as set-user-id programs do."""
    _check(_libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def drop_capabilities(kept: set[int]) -> None:
    """Let programs of this process never have other capabilities than these."""
    for number in range(_LAST_CAPABILITY + 1):
        if number not in kept and _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0) < 0:
            return  # the kernel has no such number, nor higher ones

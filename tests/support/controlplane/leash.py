"""Commands that end when their starter ends, however that ends.

Run as `python leash.py STARTER_PID COMMAND…` this becomes COMMAND. On Linux the kernel kills it as
soon as the starter is gone, also when that was killed itself and could clean up nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def leashed(command: Sequence[str]) -> list[str]:
    """The command line that runs `command`, given by its path, on this process's leash.

    The leash is that of the thread that starts it: start it from one that lasts.
    """
    return [sys.executable, "-IS", __file__, str(os.getpid()), *command]


def main(starter: str, *command: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(starter):
            sys.exit(1)  # the starter went before the leash was on
    os.execv(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])

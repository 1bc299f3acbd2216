"""`python -m tests.support.controlplane build|path|run`."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys

from tests.support.controlplane.builder import TOOLS, Builder, BuildError
from tests.support.controlplane.toolchain import ToolchainError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.controlplane")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="build the binaries that are missing")
    path = verbs.add_parser("path", help="print the cache folder, or where one binary is")
    path.add_argument("tool", nargs="?", choices=list(TOOLS))
    verbs.add_parser("run", help="run a control plane until it is interrupted")
    arguments = parser.parse_args()
    builder = Builder()
    if arguments.verb == "path":
        found = builder.found()
        if arguments.tool and arguments.tool not in found:
            print(f"controlplane: no {arguments.tool} yet: build it first", file=sys.stderr)
            return 1
        print(found[arguments.tool] if arguments.tool else builder.bin)
        return 0
    try:
        builder.ensure()
    except (BuildError, ToolchainError) as error:
        print(f"controlplane: {error}", file=sys.stderr)
        return 1
    return _run(builder) if arguments.verb == "run" else 0


def _run(builder: Builder) -> int:
    from tests.support.controlplane.start import started  # needs installed libraries

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with started(builder.ensure()) as plane, contextlib.suppress(KeyboardInterrupt):
        print(f"export KUBECONFIG={plane.kubeconfig}", flush=True)
        while True:
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A component of Pumice with a probe in its event loop.

    python -m benchmarks.probe FILE COMPONENT [ARGUMENT...]

Runs `pumice COMPONENT ARGUMENT...`. A timer asks for a turn of the event loop every 2 ms: the longest time between two turns
is the longest stall, by the clock and in CPU time of the loop's thread, which other processes on the machine do not add to. The
figures are written to FILE when the component ends.
"""

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

TICK = 0.002


def command(file: Path, component: str) -> list[str]:
    """The command that runs a component with a probe; its arguments follow."""
    return [sys.executable, "-m", "benchmarks.probe", str(file), component]


class Probe:
    """Measures the longest time between two turns of the event loop.

    Attributes:
        wall: Seconds by the clock.
        cpu: Seconds of CPU time of the loop's thread.
    """

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        wall, cpu = time.monotonic(), time.thread_time()
        while True:
            await asyncio.sleep(TICK)
            now, used = time.monotonic(), time.thread_time()
            self.wall, self.cpu = max(self.wall, now - wall), max(self.cpu, used - cpu)
            wall, cpu = now, used


def main() -> None:
    """Run the component, and write the measurements when it ends."""
    import uvloop

    from pumice.cli import main as pumice

    file, arguments = Path(sys.argv[1]), sys.argv[2:]
    probe, run = Probe(), uvloop.run
    pauses: list[float] = []

    def collected(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            pauses.append(time.thread_time())
        else:
            pauses[-1] = time.thread_time() - pauses[-1]
        del info

    async def probed(task: Coroutine[Any, Any, None]) -> None:
        probing = asyncio.create_task(probe.run())
        try:
            await task
        finally:
            probing.cancel()
            used = resource.getrusage(resource.RUSAGE_SELF)
            found = {
                "stall_wall": probe.wall,
                "stall_cpu": probe.cpu,
                "longest_collection": max(pauses, default=0.0),
                "cpu_seconds": used.ru_utime + used.ru_stime,
                "memory_mib": used.ru_maxrss / 1024,
            }
            file.write_text(json.dumps(found))  # noqa: ASYNC240 - the loop ends here

    gc.callbacks.append(collected)

    def run_probed(task: Coroutine[Any, Any, None]) -> None:
        run(probed(task))

    uvloop.run = run_probed  # type: ignore[assignment]
    sys.argv = ["pumice", *arguments]
    sys.exit(pumice())


if __name__ == "__main__":
    main()

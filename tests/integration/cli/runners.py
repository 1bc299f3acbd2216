"""`pumice run` in a process of its own, as the users that there can be here."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.integration.cli.running import SECONDS
from tests.kit.builders import job, task
from tests.support.forked import programs

USER = 1000
OWN, SINGLE, SUBORDINATE = "the tests' user", "single user", "subordinate uids"
OTHERS = (SINGLE, SUBORDINATE) if os.geteuid() == 0 else ()
"""Users whom root can become, without and with a range in `/etc/subuid`."""

_OWN_MOUNTS = (
    "unshare",
    *(() if os.geteuid() == 0 else ("--user", "--map-root-user")),
    *("--mount", "sh", "-c"),
)
_BECOME = """
mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/ranges /etc/subuid && mount --bind {folder}/ranges /etc/subgid || exit
exec setpriv --reuid={user} --regid={user} --clear-groups --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search "$@"
"""
"""Files of users are those of this process alone. The interpreter of the tests may lie where only its owner may read."""


class Runner:
    """Runs `pumice run` on files in a folder of its own.

    Attributes:
        folder: The folder, which the user of the process owns.
        state: Where the process keeps its scratch folders.
        user: As whom it runs.

    Args:
        before: What a shell does before, in a mount namespace of the process alone.
    """

    def __init__(self, folder: Path, user: str = OWN, before: str = "") -> None:
        self.folder = folder
        self.state = folder / "state"
        self.user = user
        become = 'exec "$@"'
        if user != OWN:
            os.chown(folder, USER, USER)
            (folder / "passwd").write_text(f"tester:x:{USER}:{USER}::/:/bin/sh\n")
            (folder / "ranges").write_text("tester:200000:65536\n" if user == SUBORDINATE else "")
            become = _BECOME.format(folder=folder, user=USER)
        script = f"cd {folder}\nset -e\n{before}\n{become}"
        self._prefix = (*_OWN_MOUNTS, script, "sh") if before or user != OWN else ()

    def write(self, *objects: Any, name: str = "job.yaml") -> str:
        (self.folder / name).write_text(yaml.safe_dump_all(objects))
        return name

    def start(self, *arguments: str, whole: bool = True) -> "subprocess.Popen[str]":
        """Start it, as a whole or forked from a process that has imported Pumice."""
        pumice = [sys.executable, "-m", "pumice"] if whole else [programs() / "pumice"]
        return subprocess.Popen(
            [*self._prefix, *pumice, "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ
            | {
                "XDG_STATE_HOME": str(self.state),
                "PYTHONPATH": str(Path(__file__).parents[3]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(self.folder),
            },
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments, whole=bool(self._prefix))
        stdout, stderr = process.communicate(timeout=2 * SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def left_over(self) -> list[str]:
        """Scratch folders."""
        return [each.name for each in self.state.glob("pumice/run/pumice-*")]

    def traces(self) -> list[str]:
        """Processes that see a scratch folder, as all of a node do that is not gone."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # Arguments are bytes, of any encoding.
                command = (each / "cmdline").read_bytes()
                if os.fsencode(self.state) in (each / "mountinfo").read_bytes() + command:
                    found.append(os.fsdecode(command.replace(b"\0", b" ")))
        return found


def simple(name: str, script: str, replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """A Job whose pods run a script; keyword arguments are fields of the pods."""
    container = {"name": "main", "image": "any", "command": ["bash", "-c", script]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, **fields}
    return job(name, [task("worker", replicas, spec={**spec, "containers": [container]})])

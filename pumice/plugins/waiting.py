"""The wait step: an init container that holds a pod back until other pods answer.

It tries every address until each accepts a TCP connection, says what it waits for, and gives up after a
timeout, so that a pod never waits in silence. Of its image it needs a POSIX shell and one of `nc`,
`bash` and `python3`, and it fails at once where there is none.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pumice.plugins.settings import PluginSettings

__all__ = ["INTERVAL_SECONDS", "wait_container"]

INTERVAL_SECONDS = 2
"""Seconds between two tries."""

_TRY_SECONDS = 2

# Volcano's script falls back on the shell's own /dev/tcp, which only bash has, whatever `sh` is.
_SCRIPT = """\
port={port}; deadline=$(($(date +%s) + {timeout}))
if command -v nc >/dev/null; then
  answers() {{ nc -z -w {try_seconds} "$1" "$2"; }}
elif command -v bash >/dev/null; then
  answers() {{ timeout {try_seconds} bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2"; }}
elif command -v python3 >/dev/null; then
  answers() {{ python3 -c 'import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), {try_seconds})' "$1" "$2"; }}
else
  echo "this image has no nc, no bash and no python3 to wait with" >&2
  exit 1
fi
for host in {hosts}; do
  until answers "$host" "$port" </dev/null >/dev/null 2>&1; do
    if [ "$(date +%s)" -ge "$deadline" ]; then
      echo "gave up after {timeout} s: $host does not answer on port $port" >&2
      exit 1
    fi
    echo "waiting for $host to answer on port $port"
    sleep {interval}
  done
  echo "$host answers on port $port"
done
"""


def wait_container(
    name: str,
    hosts: Sequence[str],
    port: int,
    *,
    settings: PluginSettings,
    timeout: int,
    image: str = "",
) -> dict[str, Any]:
    """The init container.

    Args:
        name: Its name.
        hosts: Addresses that must answer, one after the other.
        port: TCP port on which they answer.
        settings: Image, resources and security context.
        timeout: Seconds after which it fails, and with it the pod.
        image: Image to use instead of the one in the settings.
    """
    script = _SCRIPT.format(
        port=port,
        hosts=" ".join(hosts),
        timeout=timeout,
        interval=INTERVAL_SECONDS,
        try_seconds=_TRY_SECONDS,
    )
    container: dict[str, Any] = {
        "name": name,
        "image": image or settings.wait_image,
        "command": ["sh", "-c", script],
    }
    if settings.wait_resources:
        container["resources"] = deepcopy(dict(settings.wait_resources))
    if settings.wait_security_context:
        container["securityContext"] = deepcopy(dict(settings.wait_security_context))
    return container

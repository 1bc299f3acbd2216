"""The wait step: an init container that holds a pod back until other pods answer.

It tries every address until each accepts a TCP connection, says what it waits for, and gives up after a
timeout, so that a pod never waits in silence. A shell and `nc` are all it needs of its image.
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pumice.plugins.settings import PluginSettings

__all__ = ["INTERVAL_SECONDS", "wait_container"]

INTERVAL_SECONDS = 2
"""Seconds between two tries."""

_SCRIPT = """\
port={port}; left={tries}
for host in {hosts}; do
  until nc -z -w 2 "$host" "$port" 2>/dev/null; do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
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
        tries=max(timeout // INTERVAL_SECONDS, 1),
        interval=INTERVAL_SECONDS,
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

"""OpenSSH's client configuration for the pods of a Job.

The first part equals Volcano's: one stanza for each pod. The second part matches pods by pattern, so that later pods
are found without a new file, and addresses in host files get the port, too. OpenSSH takes the first value that it
finds, so the patterns change nothing for pods that are listed.
"""

from pumice.api import names
from pumice.api.jobs import Job
from pumice.plugins.addresses import (
    hostname_pattern,
    hostnames,
    is_small,
    joined_size,
    subdomain,
)

__all__ = ["LIST_LIMIT", "client_config"]

LIST_LIMIT = 256 * 1024
"""Size of stanzas in bytes above which only patterns are used; a Secret has at most 1 MiB."""

_HEAD = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
_STANZA = len("Host \n  HostName \n  Port 65535\n")


def client_config(job: Job, port: int, *, strict_upstream: bool = False) -> str:
    """The text of `config`.

    Args:
        job: The Job.
        port: Port of the pods' ssh servers.
        strict_upstream: Whether to write only Volcano's stanzas.
    """
    listed = _listed(job, port) if strict_upstream or _fits(job) else ""
    patterns = "" if strict_upstream else _patterns(job, port)
    return f"{_HEAD}{listed}{patterns}"


def _listed(job: Job, port: int) -> str:
    return "".join(
        f"Host {hostname}\n  HostName {names.address(hostname, subdomain(job, task))}\n  Port {port}\n"
        for task in job.tasks
        for hostname in hostnames(job, task)
    )


def _fits(job: Job) -> bool:
    if is_small(job):
        return True
    size = sum(2 * joined_size(job, task) + task.size * _STANZA for task in job.tasks)
    return size <= LIST_LIMIT


def _patterns(job: Job, port: int) -> str:
    # Tasks of one stem share a pattern.
    patterns = dict.fromkeys(
        (pattern, subdomain(job, task))
        for task in job.tasks
        if (pattern := hostname_pattern(job, task))
    )
    stanzas = [
        f"Host {pattern} !*.*\n  HostName %h.{found}\n  Port {port}\n"
        for pattern, found in patterns
    ]
    subdomains = dict.fromkeys(subdomain(job, task) for task in job.tasks)
    stanzas += [f"Host *.{name}\n  Port {port}\n" for name in subdomains]
    return "".join(stanzas)

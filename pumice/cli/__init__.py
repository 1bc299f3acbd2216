"""The `pumice` command: one module for each verb, and folders with what verbs share.

    lint, review, render     admission and wiring, offline
    simulate                 scheduling cycles over manifests
    dev                      a cluster in one process, for kubectl
    explain                  why a job in the cluster waits, or where it runs
    job, queue               live Jobs and queues: list, suspend, resume, open, close
    webhook, controller, scheduler, certs      one component
    plugins                  what a Job may name under `spec.plugins`
    rules                    what admission checks, and why
    schema                   JSON Schemas of kinds, for editors
    completion               for the shell

    app, arguments, options  all verbs as one command, and what their arguments and options share
    output, exits            text and JSON on stdout, messages on stderr, exit codes

    files/                   manifests: reading, positions of fields, offline admission
    live/                    sessions with a cluster, readable objects, explanations of waits
    workflows/               JobFlows and CronJobs for `lint`, `render` and `explain`
    simulation/              the parts of `simulate`
    development/             the parts of `dev`
    processes/               shared by the components: start, logs, health, flags

A verb imports what it needs when it runs, so that `pumice --help` does not import NumPy or aiohttp.
"""

import gc
from collections.abc import Sequence

__all__ = ["kubectl_plugin", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Without the program's name; the process's own by default.

    Returns:
        The exit code.
    """
    return _run(arguments, "pumice")


def kubectl_plugin(arguments: Sequence[str] | None = None) -> int:
    """Run the command as the kubectl plugin `kubectl pumice` (executable `kubectl-pumice`); see `main`."""
    return _run(arguments, "kubectl pumice")


def _run(arguments: Sequence[str] | None, program: str) -> int:
    collecting = gc.isenabled()
    gc.disable()  # imports leave no garbage, and collecting takes time
    try:
        from pumice.cli.app import run
    finally:
        if collecting:
            gc.enable()
    return run(arguments, program)

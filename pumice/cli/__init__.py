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
    workflows                JobFlows and CronJobs for `lint`, `render` and `explain`
    lean                     faster imports, and a collector of garbage that runs rarely

    files/                   manifests: reading, positions of fields, offline admission
    live/                    sessions with a cluster, readable objects, explanations of waits
    simulation/              the parts of `simulate`
    development/             the parts of `dev`
    processes/               shared by the components: start, logs, health, flags

`app` imports the module of a verb when the verb is named, or for help about all verbs. The top of such a module imports
only what declares the verb's options and writes its output; what the verb works with (NumPy, aiohttp, YAML, rules of
admission, the scheduler) is imported in the function that uses it. So no verb waits for the libraries of another one.
"""

import atexit
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
    # The interpreter searches all objects for garbage before it ends, which would take a fifth of a verb's time.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        from pumice.cli import lean

        with lean.collecting_rarely():
            with lean.importing():
                from pumice.cli.app import run

            return run(arguments, program)
    except KeyboardInterrupt:  # also while modules are imported
        return 130  # as shells report it: 128 + SIGINT

"""Commands and options that users know from kubectl and vcctl, and what does the same here."""

__all__ = ["instead_of"]

_CREATE = "`kubectl create -f FILE`"
_EXPLAIN_QUEUE = "`pumice explain queue/NAME`"
_CLOSE_OR_OPEN = "`pumice queue close NAME` or `pumice queue open NAME`"
_LIST = "`pumice job list` or `pumice queue list`"
_FILES = "files without an option: `pumice lint FILE…`"
_BEHIND = "it behind the command, as in `pumice job list --context NAME`"

_INSTEAD = {
    ("", "help"): "`pumice --help`, or `pumice COMMAND --help`",
    ("", "version"): "`pumice --version`",
    ("", "get"): _LIST,
    ("", "list"): _LIST,
    ("", "describe"): "`pumice explain KIND/NAME`",
    ("", "apply"): "`kubectl apply -f FILE`",
    ("", "create"): _CREATE,
    ("", "delete"): "`kubectl delete KIND NAME`",
    ("job", "run"): _CREATE,
    ("job", "create"): _CREATE,
    ("job", "delete"): "`kubectl delete vcjob NAME`",
    ("job", "view"): "`pumice job get NAME`",
    ("job", "describe"): "`pumice explain job/NAME`",
    ("queue", "create"): _CREATE,
    ("queue", "delete"): "`kubectl delete queue NAME`",
    ("queue", "get"): _EXPLAIN_QUEUE,
    ("queue", "view"): _EXPLAIN_QUEUE,
    ("queue", "describe"): _EXPLAIN_QUEUE,
    ("queue", "operate"): _CLOSE_OR_OPEN,
    **{("", each): _BEHIND for each in ("--context", "--kubeconfig", "--namespace", "-n", "-A")},
    ("queue list", "-A"): "`pumice queue list`, since queues are in no namespace",
    ("job get", "-w"): "`pumice explain job/NAME --watch`",
    ("job get", "--watch"): "`pumice explain job/NAME --watch`",
    **{
        (f"job {verb}", option): f"`pumice job list -o name -l LABELS | xargs pumice job {verb}`"
        for verb in ("suspend", "resume")
        for option in ("-l", "--selector", "--all")
    },
    ("simulate", "--nodes"): "Node objects in a file of --state",
    ("lint", "-f"): _FILES,
    ("lint", "--filename"): _FILES,
    ("render", "-f"): _FILES.replace("lint", "render"),
    ("render", "--filename"): _FILES.replace("lint", "render"),
}


def instead_of(command: str, word: str) -> str:
    """What to use instead of a command or option that does not exist; empty if nothing is known.

    Args:
        command: The command without the program, for example `queue`; empty for the program itself.
        word: The command below it, or the option.
    """
    return _INSTEAD.get((command, word), "")

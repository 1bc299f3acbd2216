"""Arguments that the option parser does not take as users write them.

`--state A B C` names several files after one option. `--flag=true` and `--flag=false` are how Go programs, and so
Volcano's and Kubernetes' manifests, write boolean flags. For commands and options of kubectl and vcctl, the error message
names what does the same here.
"""

from collections.abc import Sequence
from typing import Any

from pumice.cli.exits import UserError

_STATE = "--state"
_ALWAYS = frozenset({"migrate", "simulate", "webhook"})
"""Verbs without arguments of their own."""
_AFTER_THE_REST = frozenset({"lint", "render", "review"})
"""Verbs with files or a path of their own; only arguments before `--state` are surely these."""
_VALUED = frozenset({_STATE, "--admission-conf", "--set", "-o", "--output"})

_VALUES = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""What Go's strconv.ParseBool reads."""

_CREATE = "`kubectl create -f FILE`"
_APPLY = "`kubectl apply -f FILE`"
_LINT = "`pumice lint FILE…`"
_SIMULATE = "`pumice simulate --state FILE…`"
_PODS = "`kubectl get pods`"
_SUSPEND = "`pumice job suspend NAME`, or `kubectl delete vcjob NAME`"
_AGAIN = "`pumice job suspend NAME` and `pumice job resume NAME`"
_EXPLAIN_JOB = "`pumice explain job/NAME`"
_DEV = "`pumice dev --detach`"
_DEV_STOP = "`pumice dev stop`"
_SCALE = "`kubectl edit vcjob NAME`, and change `replicas` of a task"
_EXPLAIN_QUEUE = "`pumice explain queue/NAME`"
_CLOSE_OR_OPEN = "`pumice queue close NAME` or `pumice queue open NAME`"
_LIST = "`pumice job list` or `pumice queue list`"
_FILES = "files without an option: `pumice lint FILE…`"
_STATE_FILE = "`--state FILE` for a file"
_BEHIND = "it behind the command, as in `pumice job list --context NAME`"

_INSTEAD = {
    ("", "help"): "`pumice --help`, or `pumice COMMAND --help`",
    ("", "version"): "`pumice --version`",
    ("", "get"): _LIST,
    ("", "list"): _LIST,
    ("", "describe"): "`pumice explain KIND/NAME`",
    **dict.fromkeys([("", "apply"), ("", "submit"), ("job", "apply"), ("job", "submit")], _APPLY),
    ("", "create"): _CREATE,
    ("", "delete"): "`kubectl delete KIND NAME`",
    ("", "logs"): "`pumice job logs NAME`",
    ("", "status"): "`pumice job list`, or `pumice dev status`",
    **dict.fromkeys([("", "validate"), ("", "check"), ("", "vet")], _LINT),
    **dict.fromkeys([("", "schedule"), ("", "plan"), ("", "dry-run")], _SIMULATE),
    **dict.fromkeys([("", "ps"), ("", "pods"), ("", "pod"), ("job", "pods")], _PODS),
    **dict.fromkeys([("", "node"), ("", "nodes")], "`kubectl get nodes`"),
    **dict.fromkeys([("", "pg"), ("", "podgroup"), ("", "podgroups")], "`kubectl get podgroups`"),
    **dict.fromkeys([("", "cancel"), ("", "stop"), ("", "suspend")], _SUSPEND),
    ("", "resume"): "`pumice job resume NAME`",
    **dict.fromkeys([("", "up"), ("", "start"), ("", "cluster"), ("dev", "up")], _DEV),
    **dict.fromkeys([("dev", "down"), ("dev", "kill"), ("", "down")], _DEV_STOP),
    ("dev", "logs"): "`pumice dev status`, which names the file of each",
    ("", "install"): "`helm install`, as in docs/installation.md",
    **{
        (group, "help"): f"`pumice {group} --help`, or `pumice {group} COMMAND --help`"
        for group in ("job", "queue", "dev", "migrate")
    },
    ("", "scale"): _SCALE,
    ("job", "scale"): _SCALE,
    ("job", "run"): _CREATE,
    ("job", "create"): _CREATE,
    ("job", "delete"): "`kubectl delete vcjob NAME`",
    ("job", "view"): "`pumice job get NAME`",
    **dict.fromkeys([("job", each) for each in ("describe", "explain", "events")], _EXPLAIN_JOB),
    ("job", "status"): "`pumice job get NAME`",
    **dict.fromkeys([("job", each) for each in ("stop", "cancel", "kill", "abort")], _SUSPEND),
    ("job", "restart"): _AGAIN,
    ("job", "wait"): "`kubectl wait vcjob/NAME --for=jsonpath={.status.state.phase}=Completed`",
    ("dev", "list"): "`pumice dev status`",
    ("dev", "start"): _DEV,
    ("dev", "delete"): _DEV_STOP,
    ("queue", "create"): _CREATE,
    ("queue", "delete"): "`kubectl delete queue NAME`",
    **{
        ("queue", each): _EXPLAIN_QUEUE for each in ("get", "view", "describe", "explain", "status")
    },
    ("queue", "update"): "`kubectl edit queue NAME`",
    ("queue", "suspend"): "`pumice queue close NAME`",
    ("queue", "resume"): "`pumice queue open NAME`",
    ("queue", "operate"): _CLOSE_OR_OPEN,
    **{("", each): _BEHIND for each in ("--context", "--kubeconfig", "--namespace", "-n", "-A")},
    **{
        (f"{group} {verb}", option): f"the name without an option: `pumice {group} {verb} NAME`"
        for group, verbs in (
            ("job", ("get", "logs", "suspend", "resume")),
            ("queue", ("close", "open")),
        )
        for verb in verbs
        for option in ("-N", "--name")
    },
    ("job list", "-N"): "`pumice job get NAME` for one Job, or `-n` for a namespace",
    ("job list", "--name"): "`pumice job get NAME`",
    ("job logs", "-c"): "`kubectl logs POD -c NAME` for one container",
    ("job logs", "--container"): "`kubectl logs POD -c NAME` for one container",
    ("job logs", "--previous"): "`--failed`, for the log of a container before it was restarted",
    ("job logs", "-p"): "`--failed`, for the log of a container before it was restarted",
    ("job list", ""): "`pumice job get NAME` for one Job",
    ("queue list", ""): _EXPLAIN_QUEUE,
    ("dev stop", ""): "`--kubeconfig FILE` for one of several",
    ("job logs", "--tail"): "`--since TIME`, or `pumice explain job NAME --logs N`",
    ("job list", "-q"): _EXPLAIN_QUEUE,
    ("job list", "--queue"): _EXPLAIN_QUEUE,
    ("explain", "-q"): _EXPLAIN_QUEUE,
    ("explain", "--queue"): _EXPLAIN_QUEUE,
    ("explain", "-N"): _EXPLAIN_JOB,
    ("queue list", "-A"): "`pumice queue list`, since queues are in no namespace",
    ("job get", "-w"): "`pumice explain job/NAME --watch`",
    ("job get", "--watch"): "`pumice explain job/NAME --watch`",
    **{
        (f"job {verb}", option): f"`pumice job list -o name -l LABELS | xargs pumice job {verb}`"
        for verb in ("suspend", "resume")
        for option in ("-l", "--selector", "--all")
    },
    ("simulate", ""): _STATE_FILE,
    ("simulate", "-f"): _STATE_FILE,
    ("simulate", "--filename"): _STATE_FILE,
    ("migrate check", "-f"): _STATE_FILE,
    ("migrate check", ""): _STATE_FILE,
    ("lint", "-f"): _FILES,
    ("lint", "--filename"): _FILES,
    ("render", "-f"): _FILES.replace("lint", "render"),
    ("render", "--filename"): _FILES.replace("lint", "render"),
}


def spread(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the option repeated before every file that follows it.

    Where a verb takes files of its own, `lint --state queues.yaml job.yaml` still lints `job.yaml`, while
    `lint job.yaml --state queues.yaml nodes.yaml` names two files of state.
    """
    verb = arguments[0] if arguments else ""
    if verb not in _ALWAYS | _AFTER_THE_REST:
        return list(arguments)
    found: list[str] = [verb]
    may_spread = verb in _ALWAYS
    spreading = False
    before = verb
    for each in arguments[1:]:
        if before in _VALUED:
            spreading = before == _STATE
        elif each.startswith("-") and each != "-":
            spreading = each.startswith(f"{_STATE}=")
        elif spreading and may_spread:
            found.append(_STATE)
        else:
            may_spread, spreading = True, False
        found.append(each)
        before = each if before not in _VALUED else ""
    return found


def without_values(parameters: Sequence[Any], arguments: Sequence[str]) -> list[str]:
    """Arguments in which each boolean flag with a value is written without it.

    `--wait=true` becomes `--wait`, and `--leader-elect=false` becomes `--no-leader-elect`. A flag without a negative
    form is removed by `=false`, with those before it, since the last one counts.

    Raises:
        UserError: The value is not a boolean.
    """
    flags = {
        name: (each, is_on)
        for each in parameters
        if getattr(each, "is_flag", False)
        for names, is_on in ((each.opts, True), (each.secondary_opts, False))
        for name in names
    }
    found: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*found, *arguments[position:]]
        name, equals, value = argument.partition("=")
        if not equals or not name.startswith("--") or name not in flags:
            found.append(argument)
            continue
        if value not in _VALUES:
            raise UserError(f"{name}: invalid boolean value {value!r}, expected true or false")
        flag, is_on = flags[name]
        names = flag.opts if _VALUES[value] is is_on else flag.secondary_opts
        if names:
            found.append(names[-1])
        else:
            found = [each for each in found if each not in flag.opts]
    return found


def instead_of(command: str, word: str) -> str:
    """What to use instead of a command, option or argument that does not exist; empty if nothing is known.

    Args:
        command: The command without the program, for example `queue`; empty for the program itself.
        word: The command below it, or the option; empty for an argument beyond those that it takes.
    """
    return _INSTEAD.get((command, word), "")

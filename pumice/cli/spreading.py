"""`--state A B C`: several files after one option, which the option parser does not support."""

from collections.abc import Sequence

__all__ = ["spread"]

_STATE = "--state"
_ALWAYS = frozenset({"simulate", "webhook"})
"""Verbs without arguments of their own."""
_AFTER_THE_REST = frozenset({"lint", "render", "review"})
"""Verbs with files or a path of their own; only arguments before `--state` are surely these."""
_VALUED = frozenset({_STATE, "--admission-conf", "--set", "-o", "--output"})


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

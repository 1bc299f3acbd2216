"""`--state A B C`: several files behind one option, which the parser of options does not know."""

from collections.abc import Sequence

__all__ = ["spread"]

_STATE = "--state"
_ALWAYS = frozenset({"simulate", "webhook"})
"""Verbs that take nothing but options."""
_AFTER_THE_REST = frozenset({"lint", "render", "review"})
"""Verbs that take files or a path of their own; only what comes before `--state` is surely that."""
_VALUED = frozenset({_STATE, "--admission-conf", "--set", "-o", "--output"})


def spread(arguments: Sequence[str]) -> list[str]:
    """Arguments with the option repeated before every file that follows it.

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

"""Flags of Volcano's admission that are settings here, and flags without a meaning here."""

from collections.abc import Sequence

_FEATURES = {
    "SchedulingGatesQueueAdmission": "scheduling-gates-queue-admission",
    "PodLevelResources": "pod-level-resources",
}
"""Feature gates of Volcano and of Kubernetes that are settings here."""


def settings_among(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Settings of admission from Volcano's flags, and the arguments that are not settings."""
    from pumice.webhook.rules.rule import RuleSettings

    declared = {name.replace("_", "-"): each.type for name, each in RuleSettings.declared().items()}
    settings: list[str] = []
    others: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("--") and name == "feature-gates":
            wanted, unknown = _features(value if equals or not rest else rest.pop(0))
            settings += wanted
            others += unknown
        elif not argument.startswith("-") or name not in declared:
            others.append(argument)
        elif equals:
            settings.append(f"{name}={value}")
        elif declared[name] is bool:
            settings.append(f"{name}=true")  # a flag of Go's never takes the next word
        else:
            settings.append(f"{name}={rest.pop(0) if rest else ''}")
    return settings, others


def is_on(gates: str, name: str) -> tuple[bool, list[str]]:
    """Whether a feature gate is on in `Name=true,…`, and the other gates, which have no meaning for the scheduler."""
    settings, others = _features(gates)
    found = False
    for setting in settings:
        key, _, value = setting.partition("=")
        if key == _FEATURES[name]:
            found = value == "true"
        else:
            others.append(
                f"--feature-gates={next(each for each in _FEATURES if _FEATURES[each] == key)}={value}"
            )
    return found, others


def asks_for_version(arguments: Sequence[str]) -> bool:
    """True if arguments that Pumice does not know contain `--version`: Volcano's components print it and exit."""
    return any(each in ("--version", "--version=true") for each in arguments)


def _features(gates: str) -> tuple[list[str], list[str]]:
    """Settings from `Name=true,…`, and the gates that are not settings."""
    settings: list[str] = []
    others: list[str] = []
    for gate in filter(None, gates.split(",")):
        name, equals, value = gate.partition("=")
        if name in _FEATURES:
            settings.append(f"{_FEATURES[name]}={value if equals else 'true'}")
        else:
            others.append(f"--feature-gates={gate}")
    return settings, others

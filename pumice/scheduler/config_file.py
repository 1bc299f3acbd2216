"""The scheduler's configuration file as pydantic models, and its conversion.

Names of plugins and actions, and their arguments, are checked by validators, so that all problems are reported.
`config` imports this module only if there is a file.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, create_model, field_validator

from pumice.api.fields import did_you_mean
from pumice.api.json_words import quoted, shown
from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.options import SWITCHES, Config, PluginOption
from pumice.scheduler.registry import PLANNED_PLUGINS, SchedulerRegistry
from pumice.scheduler.specs import ActionSpec, PluginSpec
from pumice.settings import FilePart, document, read_leniently, refuse

_FILE = "volcano-scheduler.conf"
"""Key of a ConfigMap that holds the configuration, by convention."""

_MISSING = "is not part of this version, ignored"


_INSTEAD = {"gangpreempt": "preempt", "gangreclaim": "reclaim"}
"""Actions that take the place of others."""


def _spelt(name: str, known: Mapping[str, Any]) -> str:
    """The name of an action that is written with other capitals, such as `gangPreempt`; otherwise the name itself."""
    return name.lower() if name not in known and name.lower() in known else name


def _unknown(
    what: str, name: str, known: Mapping[str, Any], planned: Iterable[str] = ()
) -> list[str]:
    """The problem of a name that there is not."""
    if name in known or name in planned:
        return []
    names = sorted(known)
    hint = did_you_mean(name, [*names, *planned])
    return [f"unknown {what} {quoted(name)}{hint}; there are {', '.join(names)}"]


def _action(name: str, info: ValidationInfo[SchedulerRegistry]) -> str:
    known = info.context.actions
    problems = _unknown("action", _spelt(name, known), known)
    refuse((((), each) for each in problems), "SCHED-UNKNOWN-ACTION")
    return _spelt(name, known)


def _plugin(name: str, info: ValidationInfo[SchedulerRegistry]) -> str:
    problems = _unknown("plugin", name, info.context.plugins, PLANNED_PLUGINS)
    refuse((((), each) for each in problems), "SCHED-UNKNOWN-PLUGIN")
    return name


def _actions(names: str, info: ValidationInfo[SchedulerRegistry]) -> str:
    known = info.context.actions
    if not names.strip():
        listed = ", ".join(sorted(known))
        message = f'must name actions, separated by commas, such as "{listed}"; found nothing'
        refuse([((), message)], "SCHED-ACTIONS")
    if not all(map(str.strip, names.split(","))):
        refuse([((), f"must name an action between two commas, found {quoted(names)}")])
    listed_names = [_spelt(each.strip(), known) for each in names.split(",")]
    found = [_unknown("action", each, known) for each in listed_names]
    refuse((((), each) for problems in found for each in problems), "SCHED-UNKNOWN-ACTION")
    return names


def _usable(kind: Literal["actions", "plugins"]) -> AfterValidator:
    """Refuses arguments with which the configuration cannot be used."""

    def check(given: dict[str, Any], info: ValidationInfo[SchedulerRegistry]) -> dict[str, Any]:
        specs: Mapping[str, ActionSpec | PluginSpec] = getattr(info.context, kind)
        spec = specs.get(info.data.get("name", ""))
        problems = Arguments(given, spec.arguments, "").problems if spec is not None else ()
        refuse((((path.removeprefix("."),), text) for path, text in problems), "SCHED-ARGUMENT")
        return given

    return AfterValidator(check)


class ActionEntry(FilePart):
    """Arguments of an action."""

    name: Annotated[str, AfterValidator(_action)] = Field(description="name of an action")
    arguments: Annotated[dict[str, Any], _usable("actions")] = Field(
        default={}, description="Its arguments."
    )


class _PluginEntry(FilePart):
    """A plugin of a tier; each of its switches turns off one of its functions."""

    name: Annotated[str, AfterValidator(_plugin)] = Field(description="name of a plugin")
    arguments: Annotated[dict[str, Any], _usable("plugins")] = Field(
        default={}, description="Its arguments."
    )


_SWITCHES: Any = {
    name: (bool, Field(default=value, alias=name)) for name, value in SWITCHES.items()
}
PluginEntry: Any = create_model(
    "PluginEntry", __base__=_PluginEntry, __doc__=_PluginEntry.__doc__, **_SWITCHES
)


class TierEntry(FilePart):
    """Plugins that decide together; those of later tiers decide what these leave open."""

    plugins: list[PluginEntry] = Field(default=[])

    @field_validator("plugins")
    @classmethod
    def _share_once(cls, found: list[Any]) -> list[Any]:
        named = {each.name: each for each in found}
        if "proportion" in named and getattr(named.get("drf"), "enableHierarchy", False):
            message = (
                "proportion and hierarchical drf conflict: both divide the cluster between queues; "
                "remove proportion or drf's enableHierarchy"
            )
            refuse([((), message)], "SCHED-FAIR-SHARE-CONFLICT")
        return found


class SchedulerFile(FilePart):
    """The file that `pumice scheduler --config` names, in Volcano's format."""

    actions: Annotated[str, AfterValidator(_actions)] = Field(
        description='actions of a cycle, separated by commas, such as "enqueue, allocate"'
    )
    tiers: list[TierEntry] = Field(
        default=[], description="Tiers of plugins, the first decides first."
    )
    configurations: list[ActionEntry] = Field(default=[], description="Arguments of actions.")
    metrics: Any = Field(default=None, description="Volcano's; it has no effect.")


def read_config(text: str, registry: SchedulerRegistry) -> Config:
    """Read a configuration file, or a ConfigMap that holds one.

    Raises:
        SettingError: It cannot be used.
    """
    content = document(text.encode())
    if isinstance(content, dict) and content.get("kind") == "ConfigMap":
        content = document(_in_config_map(content.get("data")).encode())
    elif isinstance(content, dict) and "actions" not in content and "kind" in content:
        message = f"is a {str(content['kind'])[:60]}; expected actions and tiers, or a ConfigMap with them"
        raise SettingError([SettingProblem((), message, "SCHED-CONFIG-MAP")])
    file, unknown = read_leniently(SchedulerFile, {} if content is None else content, registry)
    warnings = list(map(str, unknown))
    missing: dict[str, None] = {}
    if file.metrics is not None:
        warnings.append(f"metrics: {_MISSING.removeprefix('is ')}")
    actions = _chosen_actions(file, registry, warnings)
    plugins = _chosen_plugins(file, registry, warnings, missing)
    return Config(tuple(actions), tuple(plugins), tuple(warnings), tuple(missing))


def _in_config_map(data: Any) -> str:
    """The file in a ConfigMap, as `kubectl get configmap -o yaml` prints it."""
    data = data if isinstance(data, dict) else {}
    names = [_FILE] if _FILE in data else list(data)
    where: tuple[str | int, ...] = ("data",)
    message = f"must hold the configuration under the key {_FILE}, or a single key; found "
    message += ", ".join(sorted(map(str, data))) or "nothing"
    if len(names) == 1:
        text = data[names[0]]
        if isinstance(text, str) and "kind: ConfigMap" not in text:
            return text
        if not isinstance(text, str):
            where, message = ("data", str(names[0])), f"must be a string; found {shown(text)}"
    raise SettingError([SettingProblem(where, message, "SCHED-CONFIG-MAP")])


def _chosen_actions(
    file: Any, registry: SchedulerRegistry, warnings: list[str]
) -> Iterator[tuple[ActionSpec, Arguments]]:
    given = {}
    for place, entry in enumerate(file.configurations):
        declared = registry.actions[entry.name].arguments
        path = f"configurations[{place}].arguments"
        given[entry.name] = Arguments(entry.arguments, declared, path)
        warnings += given[entry.name].warnings
    written = [each.strip() for each in file.actions.split(",")]
    names = [_spelt(each, registry.actions) for each in written]
    for text, name in zip(written, names, strict=True):
        spec = registry.actions[name]
        instead = next((each for each in names if _INSTEAD.get(each) == name), None)
        if text != name:
            warnings.append(f"actions: {text} is read as {name}, as Volcano spells it")
        if instead is not None:
            warnings.append(f"actions: {name} is ignored, because {instead} takes its place")
        else:
            yield spec, given.get(name) or Arguments({}, spec.arguments)


def _chosen_plugins(
    file: Any, registry: SchedulerRegistry, warnings: list[str], missing: dict[str, None]
) -> Iterator[PluginOption]:
    names: set[str] = set()
    ordering: set[str] = set()
    entries = [
        (tier, f"tiers[{tier}].plugins[{place}]", entry)
        for tier, each in enumerate(file.tiers)
        for place, entry in enumerate(each.plugins)
    ]
    for tier, path, entry in entries:
        spec = registry.plugins.get(entry.name)
        if spec is None:
            missing[f"plugin {entry.name}"] = None
            warnings.append(f"{path}: plugin {entry.name} {_MISSING}")
        elif spec.name in names:
            warnings.append(f"{path}: {spec.name} is named twice, ignored")
        else:
            names.add(spec.name)
            arguments = Arguments(entry.arguments, spec.arguments, f"{path}.arguments")
            warnings += arguments.warnings
            for other in sorted(spec.behind & ordering):
                warnings.append(
                    f"{path}: {other} stands before {spec.name} and decides about the order of gangs first; "
                    f"put {spec.name} before it, or set its enableJobOrder to false"
                )
            if entry.enableJobOrder:
                ordering.add(spec.name)
            yield PluginOption(
                spec, tier, arguments, {each: getattr(entry, each) for each in SWITCHES}
            )

"""The scheduler configuration, in Volcano's file format.

```yaml
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: task-topology
    arguments: {task-topology.weight: 10}
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
```

Everything that is wrong is reported at once. What Volcano has and this version has not is accepted with a
warning, and so are unknown fields, which Volcano reads over; unknown names are errors.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from pumice.api.fields import FieldError, did_you_mean, summary
from pumice.scheduler.arguments import NO_ARGUMENTS, Arguments
from pumice.scheduler.options import SWITCHES, Config, PluginOption
from pumice.scheduler.registry import (
    PLANNED_ACTIONS,
    PLANNED_PLUGINS,
    SchedulerRegistry,
    default_registry,
)
from pumice.scheduler.specs import ActionSpec

__all__ = ["DEFAULT", "Config", "ConfigError", "load_config"]

DEFAULT = """\
# Pumice's default. Queues share the cluster by weight, within their guarantees and capabilities, and take
# back what they deserve (proportion; use capacity in its place where queues form a tree or state what they
# deserve). Within a queue, gangs of higher priority go first and evict others where that makes room; among
# equal ones the gang that has least goes first (drf). A gang may lose pods to both: priorities and shares
# would mean nothing to gangs otherwise. Nodes on which no gang is broken come first. Gangs are packed: of two nodes that suit equally well, the
# fuller one is taken, so that whole nodes stay free for the next gang. Task topology and node groups have
# no weight here, which means that they decide first and the sums of the other scorers only among what
# they leave.
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
    enableReclaimable: false
  - name: conformance
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: proportion
- plugins:
  - name: predicates
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
  - name: binpack
  - name: task-topology
  - name: nodegroup
    arguments:
      nodegroup.open: true
"""
"""Configuration when none is given."""

_FILE = "volcano-scheduler.conf"
"""Key of a ConfigMap that holds the configuration, by convention."""

_MISSING = "is not part of this version, ignored"


class ConfigError(ValueError):
    """A configuration that cannot be used.

    Attributes:
        errors: Everything that is wrong, with paths.
    """

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("scheduler configuration:\n" + summary(errors))
        self.errors = errors


def load_config(text: str | None = None, registry: SchedulerRegistry | None = None) -> Config:
    """Read a configuration.

    Args:
        text: The file; None for the default.
        registry: Plugins and actions there are; None for the built-in and installed ones.

    Raises:
        ConfigError: It cannot be used.
    """
    reader = _Reader(registry or default_registry())
    config = reader.read(DEFAULT if text is None else text)
    if reader.errors:
        raise ConfigError(reader.errors)
    return config


class _Reader:
    def __init__(self, registry: SchedulerRegistry) -> None:
        self._registry = registry
        self.errors: list[FieldError] = []
        self._warnings: list[str] = []
        self._missing: dict[str, None] = {}

    def read(self, text: str) -> Config:
        try:
            document = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problem = " ".join(str(error).split())
            self._error("", f"must be a YAML document: {problem}", "SCHED-YAML")
            document = {}
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            return self._config_map(document)
        root = self._mapping(document if document is not None else {}, "")
        known = ("actions", "tiers", "configurations", "metrics")
        self._no_others(root, known, "")
        if "metrics" in root:
            self._warnings.append("metrics: not part of this version, ignored")
        settings = self._configurations(root.get("configurations"))
        actions = self._actions(root.get("actions"), settings)
        plugins = self._tiers(root.get("tiers"))
        return Config(actions, plugins, tuple(self._warnings), tuple(self._missing))

    def _config_map(self, manifest: Mapping[str, Any]) -> Config:
        """A ConfigMap that holds the file, as `kubectl get configmap -o yaml` prints it."""
        data = self._mapping(manifest.get("data") or {}, "data")
        names = [_FILE] if _FILE in data else list(data)
        text = data[names[0]] if len(names) == 1 else None
        if isinstance(text, str) and "kind: ConfigMap" not in text:
            return self.read(text)
        if len(names) == 1 and not isinstance(text, str):
            self._error(f"data.{names[0]}", f"must be a string; found {text!r}", "SCHED-CONFIG-MAP")
            return Config((), ())
        listed = ", ".join(sorted(data)) or "nothing"
        message = (
            f"must hold the configuration under the key {_FILE}, or a single key; found {listed}"
        )
        self._error("data", message, "SCHED-CONFIG-MAP", "FieldValueRequired")
        return Config((), ())

    # -- sections ----------------------------------------------------------------------------

    def _actions(
        self, value: object, settings: Mapping[str, Arguments]
    ) -> tuple[tuple[ActionSpec, Arguments], ...]:
        names = sorted(self._registry.actions)
        if not isinstance(value, str) or not value.strip():
            listed = ", ".join(names)
            found = "nothing" if value is None else repr(value)
            message = f'must name actions, separated by commas, such as "{listed}"; found {found}'
            self._error("actions", message, "SCHED-ACTIONS", "FieldValueRequired")
            return ()
        actions = []
        for name in (part.strip() for part in value.split(",")):
            spec = self._registry.actions.get(name)
            if spec is not None:
                actions.append((spec, settings.get(name, NO_ARGUMENTS)))
            elif name in PLANNED_ACTIONS:
                self._missing[f"action {name}"] = None
                self._warnings.append(f"actions: {name} {_MISSING}")
            else:
                hint = did_you_mean(name, [*names, *PLANNED_ACTIONS])
                message = f"unknown action {name!r}{hint}; there are {', '.join(names)}"
                self._error("actions", message, "SCHED-UNKNOWN-ACTION", "FieldValueNotSupported")
        return tuple(
            (spec, arguments if arguments is not NO_ARGUMENTS else Arguments({}, spec.arguments))
            for spec, arguments in actions
        )

    def _configurations(self, value: object) -> dict[str, Arguments]:
        settings: dict[str, Arguments] = {}
        for place, item in enumerate(self._list(value, "configurations")):
            path = f"configurations[{place}]"
            entry = self._mapping(item, path)
            self._no_others(entry, ("name", "arguments"), path)
            name = entry.get("name")
            given = self._mapping(entry.get("arguments") or {}, f"{path}.arguments")
            spec = self._registry.actions.get(name) if isinstance(name, str) else None
            if spec is not None:
                arguments = Arguments(given, spec.arguments, f"{path}.arguments")
                self._take(arguments)
                settings[spec.name] = arguments
            elif name in PLANNED_ACTIONS:
                self._warnings.append(f"{path}: {name} {_MISSING}")
            else:
                names = sorted(self._registry.actions)
                hint = did_you_mean(str(name), [*names, *PLANNED_ACTIONS])
                message = f"must be the name of an action, found {name!r}{hint}"
                self._error(f"{path}.name", message, "SCHED-UNKNOWN-ACTION")
        return settings

    def _tiers(self, value: object) -> tuple[PluginOption, ...]:
        options: list[PluginOption] = []
        names: set[str] = set()
        for tier, item in enumerate(self._list(value, "tiers")):
            path = f"tiers[{tier}]"
            entry = self._mapping(item, path)
            self._no_others(entry, ("plugins",), path)
            in_tier: dict[str, Mapping[str, Any]] = {}
            for place, plugin in enumerate(self._list(entry.get("plugins"), f"{path}.plugins")):
                where = f"{path}.plugins[{place}]"
                given = self._mapping(plugin, where)
                option = self._plugin(given, tier, where)
                name = given.get("name")
                if isinstance(name, str):
                    in_tier[name] = given
                if option is None:
                    continue
                if option.spec.name in names:
                    self._warnings.append(f"{where}: {option.spec.name} is named twice, ignored")
                    continue
                names.add(option.spec.name)
                options.append(option)
            self._check_fair_share(in_tier, path)
        return tuple(options)

    def _check_fair_share(self, in_tier: Mapping[str, Mapping[str, Any]], path: str) -> None:
        if "proportion" in in_tier and in_tier.get("drf", {}).get("enableHierarchy") is True:
            message = (
                "proportion and hierarchical drf conflict: both divide the cluster between queues; "
                "remove proportion or drf's enableHierarchy"
            )
            self._error(f"{path}.plugins", message, "SCHED-FAIR-SHARE-CONFLICT")

    def _plugin(self, given: Mapping[str, Any], tier: int, path: str) -> PluginOption | None:
        name = given.get("name")
        if not isinstance(name, str) or not name:
            message = f"must be the name of a plugin, found {name!r}"
            self._error(f"{path}.name", message, "SCHED-UNKNOWN-PLUGIN", "FieldValueRequired")
            return None
        switches = self._switches(given, path)
        values = self._mapping(given.get("arguments") or {}, f"{path}.arguments")
        spec = self._registry.plugins.get(name)
        if spec is None:
            names = sorted(self._registry.plugins)
            if name in PLANNED_PLUGINS:
                self._missing[f"plugin {name}"] = None
                self._warnings.append(f"{path}: plugin {name} {_MISSING}")
            else:
                hint = did_you_mean(name, [*names, *PLANNED_PLUGINS])
                message = f"unknown plugin {name!r}{hint}; there are {', '.join(names)}"
                code = "SCHED-UNKNOWN-PLUGIN"
                self._error(f"{path}.name", message, code, "FieldValueNotSupported")
            return None
        arguments = Arguments(values, spec.arguments, f"{path}.arguments")
        self._take(arguments)
        return PluginOption(spec, tier, arguments, switches)

    def _switches(self, given: Mapping[str, Any], path: str) -> Mapping[str, bool]:
        switches = dict(SWITCHES)
        for key, value in given.items():
            if key in ("name", "arguments"):
                continue
            if key not in SWITCHES:
                hint = did_you_mean(str(key), [*SWITCHES, "name", "arguments"])
                self._warnings.append(f"{path}.{key}: unknown field, ignored{hint}")
            elif not isinstance(value, bool):
                message = f"must be true or false, found {value!r}"
                self._error(f"{path}.{key}", message, "SCHED-TYPE", "FieldValueTypeInvalid")
            else:
                switches[key] = value
        return switches

    def _take(self, arguments: Arguments) -> None:
        """Report what is wrong with arguments."""
        self._warnings.extend(arguments.warnings)
        for path, message in arguments.problems:
            self._error(path, message, "SCHED-ARGUMENT")

    # -- shapes ------------------------------------------------------------------------------

    def _mapping(self, value: object, path: str) -> Mapping[str, Any]:
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        message = f"must be a mapping with text keys, found {_kind(value)}"
        self._error(path, message, "SCHED-TYPE", "FieldValueTypeInvalid")
        return {}

    def _list(self, value: object, path: str) -> list[Any]:
        if value is None:
            return []
        if isinstance(value, list):
            return value
        message = f"must be a list, found {_kind(value)}"
        self._error(path, message, "SCHED-TYPE", "FieldValueTypeInvalid")
        return []

    def _no_others(self, given: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
        for key in given:
            if key not in known:
                where = f"{path}.{key}" if path else key
                self._warnings.append(f"{where}: unknown field, ignored{did_you_mean(key, known)}")

    def _error(self, path: str, message: str, code: str, reason: Any = "FieldValueInvalid") -> None:
        self.errors.append(FieldError(path, message, code, reason))


def _kind(value: object) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "a text", type(None): "nothing"}
    return kinds.get(type(value), f"{value!r}")

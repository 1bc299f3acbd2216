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

All problems are reported. Plugins and actions of Volcano that this version lacks are accepted with a warning, and so
are unknown fields, which Volcano ignores; unknown names are errors.
"""

from typing import Any

from pumice.api.fields import FieldError, summary
from pumice.api.setting_errors import SettingError, SettingProblem
from pumice.scheduler.arguments import Arguments
from pumice.scheduler.options import SWITCHES, Config, PluginOption
from pumice.scheduler.registry import SchedulerRegistry, default_registry
from pumice.scheduler.specs import PluginSpec

DEFAULT = """\
# Pumice's default. Queues share the cluster by weight, within their guarantees and capabilities, and take
# back what they deserve (proportion; use capacity in its place where queues form a tree or state what they
# deserve). Within a queue, gangs of higher priority go first and evict others where that makes room; among
# equal ones the gang that has least goes first (drf). A gang may lose pods to both: priorities and shares
# would mean nothing to gangs otherwise. Nodes on which no gang is broken come first. Gangs are packed: of two nodes that suit equally well, the
# fuller one is taken, so that whole nodes, and whole HyperNodes, stay free for the next gang. Task topology and node groups have
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
  - name: network-topology-aware
  - name: task-topology
  - name: nodegroup
    arguments:
      nodegroup.open: true
"""
"""Configuration when none is given."""


class ConfigError(ValueError):
    """A configuration that cannot be used.

    Attributes:
        errors: All problems, with paths.
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
    if text is None and registry is None:
        return _default(default_registry())
    from pumice.scheduler.config_file import read_config  # brings pydantic

    try:
        return read_config(DEFAULT if text is None else text, registry or default_registry())
    except SettingError as error:
        problems = (*error.problems, *error.warnings)  # a misspelt key is often the cause
        raise ConfigError([_field_error(each) for each in problems]) from None


def _default(registry: SchedulerRegistry) -> Config:
    """The default, without pydantic, which checks files of users and would be a sixth of the start of a verb."""
    from pumice.api.documents import parse  # brings YAML

    ((_, _, content),) = parse(DEFAULT.encode())
    actions = [registry.actions[name] for name in content["actions"].split(", ")]
    plugins = [
        _option(registry.plugins[entry.pop("name")], number, entry)
        for number, tier in enumerate(content["tiers"])
        for entry in tier["plugins"]
    ]
    return Config(tuple((each, Arguments({}, each.arguments)) for each in actions), tuple(plugins))


def _option(spec: PluginSpec, tier: int, entry: dict[str, Any]) -> PluginOption:
    arguments = Arguments(entry.pop("arguments", {}), spec.arguments)
    return PluginOption(spec, tier, arguments, {**SWITCHES, **entry})


def _field_error(problem: SettingProblem) -> FieldError:
    if problem.code == "yaml":
        return FieldError("", str(problem), "SCHED-YAML")
    code = problem.code if problem.code.startswith("SCHED") else "SCHED-TYPE"
    return FieldError(problem.path, problem.message, code)

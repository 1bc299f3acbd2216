"""Amounts of cpu and memory with a unit that was hardly meant, such as `cpu: 500M` and `memory: 4`.

Kubernetes accepts both without a warning. The first asks for 500 million cores, which no node has, and the second
for 4 bytes.
"""

import re

from pumice.api.quantities import MILLI
from pumice.webhook.rules.rule import Rule, warned

__all__ = ["TPL_CPU_UNIT", "TPL_MEMORY_UNIT", "unit_problem"]

TPL_CPU_UNIT = warned(
    "TPL-CPU-UNIT",
    "cpu is an amount of cores that a node can have",
    "cpu is counted in cores: 500m is half a core, 500M is 500 million cores, and such a pod waits forever.",
    "resources: {requests: {cpu: 500M}}",
)
TPL_MEMORY_UNIT = warned(
    "TPL-MEMORY-UNIT",
    "memory and ephemeral-storage of less than 1M have a unit",
    "A number without a unit is a number of bytes: memory: 4 is 4 bytes, and no container starts with that limit.",
    "resources: {limits: {memory: 4}}",
)

_MOST_CORES = 10_000 * MILLI
"""More than any node has, in milli-units."""
_LEAST_BYTES = 10**6 * MILLI
"""A limit below this is too low for any container to start, in milli-units."""
_MOST_GIBIBYTES = 64
"""Numbers up to this are taken for gibibytes, greater ones for mebibytes."""
_CPU = re.compile(r"(\d+(?:\.\d+)?)M?", re.ASCII)
_WHOLE = re.compile(r"\d+", re.ASCII)


def unit_problem(name: str, value: object, amount: int) -> tuple[Rule, str] | None:
    """The rule that an amount breaks and what is wrong; None if nothing is.

    Args:
        name: The resource.
        value: The amount as the manifest has it.
        amount: The same in milli-units.
    """
    text = str(value)
    if name == "cpu":
        if amount <= _MOST_CORES:
            return None
        matched = _CPU.fullmatch(text)
        why = ", since M means millions" if text.endswith("M") else ""
        hint = f' (did you mean "{matched[1]}m"?)' if matched else ""
        return TPL_CPU_UNIT, f"{text} is {amount // MILLI} cores{why}{hint}"
    if name not in ("memory", "ephemeral-storage") or not 0 < amount < _LEAST_BYTES:
        return None
    if not _WHOLE.fullmatch(text):
        return None
    number = int(text)
    unit = "Gi" if number <= _MOST_GIBIBYTES else "Mi"
    bytes_ = "byte" if number == 1 else "bytes"
    return TPL_MEMORY_UNIT, f'{text} is {number} {bytes_} (did you mean "{number}{unit}"?)'

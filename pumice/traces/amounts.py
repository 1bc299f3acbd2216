"""Amounts of resources as people write them: `8gpu,32cpu,256Gi` of nodes, and `cpu=4,gpu=1` of jobs."""

import re

from pumice.api.names import qualified_name_problem
from pumice.api.quantities import QuantityError, parse_milli

GPU = "nvidia.com/gpu"
"""The resource that `gpu` stands for."""

_SHORT = {"gpu": GPU, "gpus": GPU, "cpus": "cpu", "mem": "memory"}
_SEPARATORS = re.compile(r"[,;\s]+")
_SUFFIXED = re.compile(r"(?P<amount>\d+(?:\.\d+)?m?)(?P<name>cpus?|gpus?|pods)", re.ASCII)
_MEMORY = re.compile(r"\d+(?:\.\d+)?(?:[KMGTP]i|[kMGTP])", re.ASCII)

_LARGEST = 10**18
"""Largest amount, in milli-units: sums over all nodes of a trace are computed without loss of time or memory."""


def resource(name: str) -> str:
    """The resource that a name stands for."""
    return _SHORT.get(name, name)


def read_amounts(text: str) -> dict[str, str]:
    """Read amounts: `8gpu`, `32cpu`, `110pods`, `256Gi` (memory), or `NAME=AMOUNT`, with commas, semicolons or blanks between.

    Raises:
        ValueError: The text is something else; the message says which part of it.
    """
    found: dict[str, str] = {}
    for part in filter(None, _SEPARATORS.split(text)):
        name, amount = read_amount(part)
        if name in found:
            raise ValueError(f"{part!r} names {name} a second time")
        found[name] = amount
    return found


def read_amount(part: str) -> tuple[str, str]:
    """Read one amount: the name of its resource, and a quantity.

    Raises:
        ValueError: The text is something else.
    """
    if suffixed := _SUFFIXED.fullmatch(part):
        name, amount = suffixed["name"], suffixed["amount"]
    elif _MEMORY.fullmatch(part):
        name, amount = "memory", part
    else:
        name, equals, amount = part.partition("=")
        if not equals:
            raise ValueError(f"{part[:40]!r} is no amount, such as 8gpu, 256Gi or cpu=500m")
    return (name := resource(name)), checked(name, amount)


def checked(name: str, amount: str | float) -> str:
    """An amount of a resource, as a quantity.

    Raises:
        ValueError: It is not one.
    """
    if problem := qualified_name_problem(name):
        raise ValueError(f"{name[:40]!r} is not the name of a resource: {problem}")
    try:
        milli = parse_milli(amount)
    except QuantityError:
        raise ValueError(
            f"{name} is {str(amount)[:40]!r}; expected a quantity such as 4, 500m or 16Gi"
        ) from None
    if not 0 <= milli <= _LARGEST:
        raise ValueError(f"{name} is {str(amount)[:40]!r}; expected 0 to {_LARGEST // 1000:g}")
    return str(amount)

"""Resources: which quantities are integers, which names look misspelt, and which quantities are valid."""

from collections.abc import Iterable
from difflib import get_close_matches

from pumice.api.fields import Suggestions, did_you_mean
from pumice.api.names import qualified_name_problem
from pumice.api.quantities import MILLI, QuantityError, parse_milli
from pumice.api.remembering import remembered

HUGE_PAGES = "hugepages-"
"""What names of huge pages start with; the size of a page follows."""

COUNTED = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
"""Counted resources whose names have no vendor prefix."""

_MEASURED = frozenset({"cpu", "ephemeral-storage", "memory", "storage"})
_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_OF_PODS = ("cpu", "memory")
_EXTENDED = (
    "amd.com/gpu",
    "huawei.com/Ascend310",
    "huawei.com/Ascend910",
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "rdma/hca",
    "volcano.sh/gpu-memory",
    "volcano.sh/gpu-number",
    "volcano.sh/vgpu-cores",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-number",
)
_KNOWN = COUNTED | _MEASURED | frozenset(_EXTENDED)
_ALIKE = 0.9
"""Share of common characters above which a vendor name counts as a misspelling of another."""

SPELLING = 3000
"""Work of comparing one name with all known names, for a budget of suggestions.

It is the same with a cached result, so that results do not depend on earlier reviews.
"""


def is_integer(name: str) -> bool:
    """True if quantities of a resource are integers: counted objects and extended resources."""
    if name in COUNTED or name.startswith("count/"):
        return True
    return "/" in name and "kubernetes.io/" not in name


def amount_problem(value: object, name: str = "") -> str | None:
    """Explain why a value is not a valid quantity of a resource; None if it is. Without a name, fractions are valid."""
    try:
        amount = parse_milli(value)
    except QuantityError as error:
        return str(error)
    return count_problem(value, amount, name)


def count_problem(value: object, amount: int, name: str) -> str | None:
    """Explain why a resource cannot have a quantity, which is also given in milli-units: a negative one, or a fraction of what is counted."""
    if amount < 0:
        return f"must be greater than or equal to 0, found {value}"
    return f"must be an integer, found {value}" if amount % MILLI and is_integer(name) else None


def is_shared(name: str) -> bool:
    """True if limits of a resource may exceed requests.

    Huge pages and extended resources cannot be shared.
    """
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(HUGE_PAGES)


def container_resource_problem(name: str, hinted: bool = True) -> str | None:
    """Say why a container cannot ask for a resource of this name, or None when it can; `hinted` looks for a similar name."""
    if "/" not in name:
        if name in _OF_CONTAINERS or (name.startswith(HUGE_PAGES) and page_size(name)):
            return None
        hint = _meant(name, _OF_CONTAINERS) if hinted else ""
        known = ", ".join(_OF_CONTAINERS)
        standard = name in COUNTED or name in _MEASURED or name.startswith(("requests.", "limits."))
        qualified = "" if standard else " must be a standard resource type or fully qualified: it"
        return (
            f'"{name}"{qualified} must be a standard resource for containers ({known} or hugepages-SIZE) '
            f"or VENDOR/NAME{hint}"
        )
    if problem := qualified_name_problem(name):
        return problem
    if "kubernetes.io/" in name:
        return None
    if name.startswith("requests."):
        return f'doesn\'t follow extended resource name standard: "requests." is a prefix for quotas, found "{name}"'
    problem = qualified_name_problem(f"requests.{name}")  # as a quota on it would be called
    if problem is None:
        return None
    return f"doesn't follow extended resource name standard: with the prefix of quotas, {problem}"


def _meant(name: str, usual: Iterable[str]) -> str:
    """A hint at a device or a usual resource that a name without a vendor may mean."""
    devices = [each for each in _EXTENDED if each.partition("/")[2].lower() == name.lower()]
    if devices:
        meant = " or ".join(f'"{each}"' for each in devices)
        return f" (did you mean {meant}?)"
    return did_you_mean(name, usual)


def pod_resource_problem(name: str, hinted: bool = True) -> str | None:
    """Say why a pod cannot ask for a resource of this name as a whole, or None when it can; `hinted` looks for a similar name."""
    if name in _OF_PODS or (name.startswith(HUGE_PAGES) and page_size(name)):
        return None
    hint = did_you_mean(name, _OF_PODS) if hinted else ""
    return f'"{name}" is not a resource of pods as a whole{hint}; these are cpu, memory and hugepages-SIZE'


def page_size(name: str) -> int:
    """Bytes in a huge page, by the resource's name; 0 if the name has no valid size."""
    try:
        milli = parse_milli(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return 0
    return milli // MILLI if milli > 0 and milli % MILLI == 0 else 0


def misspelt(name: str, suggestions: Suggestions) -> str:
    """A hint that a resource does not exist, or an empty text; no similar name is searched without budget."""
    if name in _KNOWN:
        return ""
    hinted = not suggestions.spent
    suggestions.charge(SPELLING)
    return hint(name, hinted)


@remembered(1024)
def hint(name: str, hinted: bool = True) -> str:
    """A hint that an unknown resource does not exist, or an empty text; `hinted` looks for a similar name."""
    if "/" in name:
        return did_you_mean(name, _EXTENDED) if hinted and _is_near_extended(name) else ""
    if name.startswith((HUGE_PAGES, "requests.", "limits.")):
        return ""
    meant = _meant(name, [*COUNTED, *_MEASURED]) if hinted else ""
    return meant or " (no such resource is built in)"


def is_vendors(name: str) -> bool:
    """True if a name has the prefix of an unknown vendor."""
    return "/" in name and name not in _EXTENDED


def _is_near_extended(name: str) -> bool:
    """True if the name of a resource is nearly a known one; vendors choose their own names.

    A known name with a suffix is a variant (`huawei.com/Ascend910B`), unless the suffix makes a plural.
    """
    variants = {name.removeprefix(known) for known in _EXTENDED if name.startswith(known)}
    if variants - {"s"}:
        return False
    return any(get_close_matches(known, [name], cutoff=_ALIKE) for known in _EXTENDED)

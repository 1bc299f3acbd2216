"""What Kubernetes takes and nobody means: it does nothing, or not what it says.

The API server says so in a warning when somebody creates a pod; pods of a Job are made by a controller,
which nobody watches. Rooms that read a field say it; here is what is no other room's.

Source: the warnings that a Kubernetes API server of version 1.36 gives for pods.
"""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site, entries
from pumice.webhook.rules.templates.values import quoted

__all__ = [
    "RULES",
    "TPL_DOUBTFUL",
    "address_twice",
    "grace_period",
    "hidden_variables",
    "no_selector",
    "overlaps",
    "pull_secrets",
]

TPL_DOUBTFUL = Rule(
    "TPL-DOUBTFUL",
    "a template says nothing that has no effect, or hardly the one that is meant",
    "Kubernetes takes it and warns, but who hears the warning is the controller that makes the pods.",
    "resources: {limits: {memory: 512m}}",
    level="warn",
)

RULES = (TPL_DOUBTFUL,)


def grace_period(site: Site, spec: Raw) -> None:
    """Check `terminationGracePeriodSeconds`."""
    seconds = spec["terminationGracePeriodSeconds"]
    if seconds < 0:
        message = f"counts as 1 where it is below 0, found {seconds}"
        site.report(TPL_DOUBTFUL, message, "terminationGracePeriodSeconds")


def pull_secrets(site: Site, spec: Raw) -> None:
    """Check `imagePullSecrets`: names, each once."""
    seen: dict[str, int] = {}
    for index, secret in entries(spec["imagePullSecrets"]):
        name, field = secret.get("name", ""), f"imagePullSecrets[{index}].name"
        if not name:
            site.report(TPL_DOUBTFUL, "names no secret", field)
        elif (first := seen.setdefault(name, index)) != index:
            message = f"{quoted(name)} is already the name of imagePullSecrets[{first}]"
            site.report(TPL_DOUBTFUL, message, field)


def no_selector(site: Site, field: str) -> None:
    """Say that a term about pods, which is there from the site on, selects none."""
    message = "is not set, so that no pod is meant; {} stands for all pods"
    site.report(TPL_DOUBTFUL, message, f"{field}.labelSelector")


def address_twice(site: Site, address: str, first: int, field: str) -> None:
    """Say that an address of `hostAliases` has names already."""
    message = f"{quoted(address)} is already the address of hostAliases[{first}]"
    site.report(TPL_DOUBTFUL, message, field)


def hidden_variables(site: Site, variables: list[Raw]) -> None:
    """Check variables of which some have the same name: a later one hides an earlier, unless it holds it.

    Args:
        site: Where the container is.
        variables: Its variables; all have names.
    """
    seen: dict[str, int] = {}
    for index, variable in enumerate(variables):
        name, value = variable["name"], variable.get("value") or ""
        first, held = seen.setdefault(name, index), f"$({name})"
        if first == index:
            continue
        if "valueFrom" in variable or value == held or held not in str(value):
            message = f"{quoted(name)} is already the name of env[{first}], which it hides"
            site.report(TPL_DOUBTFUL, message, f"env[{index}]")


def overlaps(site: Site, files: list[tuple[str, str]]) -> None:
    """Check that no file of a volume is also a folder of it, or another file.

    Args:
        site: Where the pod's spec is.
        files: Paths in the volume, each with the place that says it, from the site on.
    """
    if len(files) < 2:
        return
    above, above_at = "", ""
    for path, at in sorted((f"{path.rstrip('/')}/", at) for path, at in files if path):
        if above and path.startswith(above):
            message = (
                f"{quoted(path[:-1])} is not free: {quoted(above[:-1])} is the file of {above_at}"
            )
            site.report(TPL_DOUBTFUL, message, at)
        else:
            above, above_at = path, at

"""`pumice plugins`: what a Job may name under `spec.plugins`."""

from typing import Any

from pumice.cli.exits import UserError
from pumice.cli.options import Output
from pumice.cli.output import Format, paint, write, write_json

__all__ = ["EXAMPLES", "plugins"]

EXAMPLES = (
    "pumice plugins",
    "pumice plugins -o json | jq '.[].name'",
)


def plugins(output: Output = Format.TEXT) -> None:
    """List the job plugins with their arguments.

    Those of installed packages are included.
    """
    entries = _entries()
    if output is Format.JSON:
        write_json(entries)
        return
    for number, entry in enumerate(entries):
        if number:
            write("")
        origin = "" if entry["origin"] == "pumice" else f"  (from {entry['origin']})"
        write(f"{paint(entry['name'], 'bold')}{origin}")
        write(f"  {entry['summary']}")
        if entry["requires"]:
            write(f"  Adds: {', '.join(entry['requires'])}")
        for argument in entry["arguments"]:
            write(
                f"  --{argument['name']} ({argument['type']}, default {argument['default']!r}): "
                f"{argument['help']}"
            )


def _entries() -> list[dict[str, Any]]:
    from pumice.plugins import PluginError, builtin

    try:
        registry = builtin().with_entry_points()
    except PluginError as error:
        raise UserError(str(error)) from None
    return [
        {
            "name": plugin.name,
            "summary": plugin.summary,
            "requires": list(plugin.requires),
            "origin": registry.origin(plugin.name),
            "arguments": [
                {
                    "name": argument.name,
                    "type": argument.kind.name,
                    "default": argument.default,
                    "help": argument.help,
                }
                for argument in plugin.arguments
            ],
        }
        for plugin in registry.plugins
    ]

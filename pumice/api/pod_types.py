"""The type of every field of a pod template.

`pod_types.json` holds, for each type below PodTemplateSpec, its fields in a short notation: `string`, `boolean`,
`int32`, `int64`, `quantity`, `int-or-string`, `time`, `any`, the name of another type, and in front of any of these
`[]` for a list and `{}` for a map. `tools/pod_types.py` writes it from the OpenAPI document of an API server.
"""

import json
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Fields", "pod_types"]

Fields = dict[str, str]
"""The fields of a type, each with its type's notation."""

ROOT = "PodTemplateSpec"
"""The type of a whole template."""


@cache
def pod_types() -> dict[str, Fields]:
    """All types by name. The file is read at the first call, since most commands never look at a template."""
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    types: dict[str, Fields] = json.loads(text)
    return types

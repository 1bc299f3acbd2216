"""What the chart's admission policies cover, as their own text says: every message ends in the code of its rule."""

import re
from pathlib import Path

__all__ = ["CODE", "POLICIES", "covered"]

POLICIES = Path(__file__).parents[2] / "charts/pumice/templates/policies"
CODE = re.compile(r"\[([A-Z]+(?:-[A-Z]+)+)\]")


def covered() -> dict[str, set[str]]:
    """Codes by the kind that they are about, under its plural."""
    return {file.stem: set(CODE.findall(file.read_text())) for file in POLICIES.glob("*.yaml")}

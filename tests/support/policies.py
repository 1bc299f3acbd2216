"""What the chart's admission policies cover, as their own text says: every message ends in the code of its rule."""

import re
from pathlib import Path

POLICIES = Path(__file__).parents[2] / "charts/pumice/templates/policies"
CODE = re.compile(r"\[([A-Z]+(?:-[A-Z]+)+)\]")

LESS = {"FLOW-CYCLE", "HN-REGEX", "Q-HIER-WEIGHT-NUM", "Q-HIER-WEIGHT-POS"}
"""Codes of rules of which the policies have a part."""

MORE = {"JOB-IMMUTABLE", "Q-DES-GT-CAP", "Q-GUAR-GT-DESERVED", "Q-GUAR-NO-DESERVED"}
"""Codes with which the policies refuse some objects that the rules admit."""


def covered() -> dict[str, set[str]]:
    """Codes by the kind that they are about, under its plural."""
    return {file.stem: set(CODE.findall(file.read_text())) for file in POLICIES.glob("*.yaml")}

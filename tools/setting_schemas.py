"""Write JSON schemas of configuration files, for editors.

Run as `python -m tools.setting_schemas [--check] FOLDER`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pumice.controller.hypernodes.reading import DiscoveryFile
from pumice.scheduler.config_file import SchedulerFile
from pumice.settings import json_schema
from pumice.webhook.resource_group_file import ResourceGroupsFile
from tools.generated import settle

FILES: dict[str, Any] = {
    "scheduler.json": SchedulerFile,
    "resource-groups.json": ResourceGroupsFile,
    "hypernode-discovery.json": DiscoveryFile,
}
"""The model behind each schema."""


def main() -> int:
    """Write or check; exit code 1 when a file is missing or stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.setting_schemas", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args()
    settled = []
    for name, model in FILES.items():
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", **json_schema(model)}
        text = json.dumps(schema, indent=2) + "\n"
        settled.append(settle(options.folder / name, text, check=options.check))
    return int(not all(settled))


if __name__ == "__main__":
    sys.exit(main())

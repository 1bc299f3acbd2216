"""Write everything that follows from the code, or check that it is up to date.

Run as `python tools/generate.py [--check]`; `make generate` and `make check` do.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

GENERATORS: tuple[tuple[str, ...], ...] = (
    ("pumice.api.crds.__main__", "charts/pumice/crds"),
    ("tools.webhook_configurations", "charts/pumice/files/webhooks.yaml"),
    ("tools.scheduler_config", "charts/pumice/files/volcano-scheduler.conf"),
    ("tools.dashboard", "charts/pumice/files/dashboard.json"),
    ("tools.values_schema", "charts/pumice"),
    ("tools.settings_page", "docs/settings.md"),
    ("tools.setting_schemas", "docs/schemas"),
    ("tools.rules_page", "docs/rules.md"),
    ("tools.phrases_page", "docs/phrases.md"),
    ("tools.metrics_page", "docs/metrics.md"),
    ("tools.scheduler_pages", "docs/scheduler", "docs/compatibility.md"),
    ("tools.pictures", "docs"),
    ("tools.plugin_pages", "docs/plugins"),
)
"""Module and arguments of each generator; every one understands `--check`."""


def main(arguments: list[str]) -> int:
    """Run all generators in this process, which imports once; exit code 1 when one of them finds something stale."""
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)
    failed = False
    for module, *rest in GENERATORS:
        sys.argv[1:] = [*rest, *arguments]
        failed |= import_module(module).main() != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

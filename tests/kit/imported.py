"""What a verb of the command line imports, from its start to its end in a process of its own."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kit.tables import table

ROOT = Path(__file__).parents[2]
SCRIPT = """
import contextlib, io, sys
before = set(sys.modules)
from pumice.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
connector = sys.modules.get("aiohttp.connector")
read = connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"] if connector else 0
print((code, sorted(set(sys.modules) - before), read))
"""


def import_rows(*, live: bool) -> list[dict[str, Any]]:
    """The rows of `cases/cli/imports.yaml`: those about verbs that ask a cluster, or the other ones."""
    return [each for each in table("cli/imports") if each.get("live", False) is live]


def check_imports(row: dict[str, Any], *options: str) -> None:
    """Run the verb of a row, with further options, and compare the modules that it has imported with the row."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *row["arguments"].split(), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    code, imported, authorities = ast.literal_eval(ran.stdout)
    assert code == row.get("code", 0), ran.stderr
    names = set(imported)
    rooms = {name.split(".")[1] for name in names if name.startswith("pumice.")}
    assert sorted(rooms) == row["rooms"]
    assert [each for each in row["absent"] if each in names] == []
    assert authorities == 0, (
        "read for aiohttp's own context; import it inside lean.importing_http()"
    )

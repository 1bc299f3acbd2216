"""Job plugins: a Job and one of its pods in, edits and wanted objects out.

Each plugin has a file, `registry` lists them, `wiring` applies them, and `findings` checks Jobs. All of it is pure:
only `reference`, which writes the plugins' documentation pages, reads files.
"""

from pumice.api.meta import Raw
from pumice.plugins.addresses import address, addresses
from pumice.plugins.applied import problems
from pumice.plugins.arguments import (
    BOOLEAN,
    INTEGER,
    PORT,
    TEXT,
    Argument,
    ArgumentSpec,
    BadValueError,
    Values,
    ValueType,
)
from pumice.plugins.edits import EnvVar, Mount, PodEdits, Port, apply
from pumice.plugins.interface import Findings, JobPlugin, KeySecret, PluginError, PodEditor
from pumice.plugins.registry import ENTRY_POINT_GROUP, Registry, builtin, dependencies
from pumice.plugins.settings import PluginSettings
from pumice.plugins.wiring import Wiring, job_annotations, task_and_index

__all__ = [
    "BOOLEAN",
    "ENTRY_POINT_GROUP",
    "INTEGER",
    "PORT",
    "TEXT",
    "Argument",
    "ArgumentSpec",
    "BadValueError",
    "EnvVar",
    "Findings",
    "JobPlugin",
    "KeySecret",
    "Mount",
    "PluginError",
    "PluginSettings",
    "PodEditor",
    "PodEdits",
    "Port",
    "Raw",
    "Registry",
    "ValueType",
    "Values",
    "Wiring",
    "address",
    "addresses",
    "apply",
    "builtin",
    "dependencies",
    "job_annotations",
    "problems",
    "task_and_index",
]

"""Tables and outputs of the plugin pages, generated from the plugins themselves.

`python -m tools.plugin_pages docs/plugins` fills the blocks between

    <!-- generated: WHAT -->
    <!-- end generated -->

in every page of the directory; with `--check` it only reports the pages that are out of date. WHAT is

- `plugins`: all plugins with their summaries and requirements;
- `arguments NAME`: the flags of a plugin;
- `fields`: fields in braces for the variables of plugin `roles`;
- `manifest PATH`: a manifest, its path relative to the page;
- `annotations`, `objects [NAME …]` or `pod TASK INDEX`: results of the plugins for the Job in the last YAML block or
  manifest above: its annotations, its objects (those with the names), what the page's plugin adds to one of its pods
  (of an init container the name);
- `file PATH`: a Python file, its path relative to the page.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pumice.api.jobs import Job
from pumice.api.kinds import SECRET
from pumice.api.meta import Raw
from pumice.plugins.arguments import BOOLEAN, Argument, shown
from pumice.plugins.interface import KeySecret
from pumice.plugins.registry import Registry, builtin, dependencies
from pumice.plugins.variables import FIELDS
from pumice.plugins.wiring import Wiring
from tools.generated import settle_blocks

_BLOCK = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end generated -->)", re.DOTALL)
_MANIFEST = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_TITLE = re.compile(r"# Plugin (\S+)\n")
_MADE = "<made when the Job starts, and kept>"


def filled(page: str, registry: Registry, folder: Path) -> str:
    """A page with all generated blocks up to date.

    Args:
        page: Text of the page.
        registry: The job plugins.
        folder: Directory of the page, for `file`.

    Raises:
        ValueError: A block refers to something that does not exist.
    """

    def fill(block: re.Match[str]) -> str:
        above = _BLOCK.sub(lambda each: _quoted(each, folder), page[: block.start()])
        content = _content(block[2].split(), above, registry, folder)
        return f"{block[1]}{content}\n{block[3]}"

    return _BLOCK.sub(fill, page)


def _quoted(block: re.Match[str], folder: Path) -> str:
    """The content of a generated block for later blocks: a manifest, or nothing."""
    what, _, path = block[2].partition(" ")
    return _file(folder / path, "yaml") if what == "manifest" else ""


def _file(path: Path, language: str) -> str:
    return f"```{language}\n{path.read_text(encoding='utf-8')}```"


def _content(what: Sequence[str], above: str, registry: Registry, folder: Path) -> str:
    match list(what):
        case ["plugins"]:
            return _plugins(registry)
        case ["arguments", name]:
            return _arguments(name, registry)
        case ["fields"]:
            rows = [f"| `{{{field}}}` | {meaning} |" for field, meaning in FIELDS.items()]
            return "\n".join(["| field | what is put in its place |", "|---|---|", *rows])
        case ["file", path]:
            return _file(folder / path, "python")
        case ["manifest", path]:
            return _file(folder / path, "yaml")
        case ["annotations"]:
            return _yaml([_wiring(above, registry)[1].job_annotations()])
        case ["objects", *names]:
            wiring = _wiring(above, registry)[1]
            wanted = [*wiring.objects(), *map(_secret, wiring.secrets())]
            return _yaml(
                [each for each in wanted if not names or each["metadata"]["name"] in names]
            )
        case ["pod", task, index]:
            whole = _pod(*_wiring(above, registry), task, int(index))
            without = _pod(*_wiring(above, registry, _own(above)), task, int(index))
            return _yaml([_added(without, whole)])
        case _:
            raise ValueError(f"nothing is generated for {' '.join(what)!r}")


def _plugins(registry: Registry) -> str:
    rows = ["| plugin | what it does | adds |", "|---|---|---|"]
    for plugin in registry.plugins:
        adds = ", ".join(f"`{name}`" for name in plugin.requires)
        rows.append(f"| [`{plugin.name}`]({plugin.name}.md) | {plugin.summary} | {adds} |")
    return "\n".join(rows)


def _arguments(name: str, registry: Registry) -> str:
    plugin = registry.get(name)
    if plugin is None:
        raise ValueError(f"{registry.unknown(name)}; list a new one in pumice/plugins/registry.py")
    if not plugin.arguments.names:
        return "None; whatever is given is ignored, with a warning."
    rows = ["| argument | value | default | meaning |", "|---|---|---|---|"]
    rows += [_row(argument) for argument in plugin.arguments]
    return "\n".join(rows)


def _row(argument: Argument) -> str:
    default = f"`{shown(argument.default)}`" if argument.default not in ((), "") else "none"
    value = "" if argument.kind is BOOLEAN else "=…"
    return f"| `--{argument.name}{value}` | {argument.kind.name} | {default} | {argument.help} |"


def _own(above: str) -> str:
    """The plugin that the page is about."""
    title = _TITLE.match(above)
    return title[1] if title else ""


def _wiring(above: str, registry: Registry, without: str = "") -> tuple[Job, Wiring]:
    """The Job of the last manifest above, after admission, with its plugins but for one."""
    manifest: Raw = yaml.safe_load(_MANIFEST.findall(above)[-1])
    manifest["metadata"].setdefault("namespace", "default")
    plugins = manifest["spec"]["plugins"]
    plugins.update(dependencies(plugins, registry))
    plugins.pop(without, None)
    job = msgspec.convert(manifest, Job)
    return job, Wiring(job, registry)


def _secret(wanted: KeySecret) -> Raw:
    keys = dict.fromkeys((wanted.private_key, *wanted.public_keys), _MADE)
    return {
        **SECRET.type_meta,
        "metadata": {"name": wanted.name, "namespace": wanted.namespace},
        "stringData": keys | dict(wanted.texts),
    }


def _pod(job: Job, wiring: Wiring, task_name: str, index: int) -> Raw:
    task = job.task(task_name)
    if task is None:
        raise ValueError(f"the Job above has no task {task_name!r}")
    metadata = {"name": f"{job.metadata.name}-{task_name}-{index}", **task.pod_metadata()}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": task.pod_spec()}
    return wiring.pod(task, index, pod)


def _added(before: Raw, after: Raw) -> Raw:
    """What an object has more than another one: keys that are new or differ, of lists the items that are."""
    found: Raw = {}
    for key, value in after.items():
        old = before.get(key)
        if key == "initContainers":
            value = [{"name": each["name"]} for each in value if each not in (old or ())]
        elif key == "containers":
            pairs = zip(old or (), value, strict=True)
            value = [
                {"name": new["name"], **more} for was, new in pairs if (more := _added(was, new))
            ]
        elif isinstance(value, dict) and isinstance(old, dict):
            value = _added(old, value)
        elif isinstance(value, list) and isinstance(old, list):
            value = [each for each in value if each not in old]
        elif value == old:
            continue
        if value:
            found[key] = value
    return found


class _ReferenceDumper(yaml.SafeDumper):
    """Writes readable YAML: indented lists, and block scalars for several lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ARG002
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_ReferenceDumper.add_representer(str, _text)


def _yaml(documents: Sequence[Any]) -> str:
    text = yaml.dump_all(documents, Dumper=_ReferenceDumper, sort_keys=False, width=10_000)
    return f"```yaml\n{text}```"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the pages of a directory; 1 if a page is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tools.plugin_pages")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    pages = sorted(options.folder.glob("*.md"))
    fill = partial(filled, registry=builtin(), folder=options.folder)
    return 0 if settle_blocks(pages, fill, check=options.check) else 1


if __name__ == "__main__":
    sys.exit(main())

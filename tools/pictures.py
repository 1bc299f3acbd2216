"""Draws what `pumice simulate` says of the examples of pages, as SVG: where pods are, cycle by cycle.

A picture is made of the files and of one simulation of its page, which are those that the tests of the documentation run, so it
cannot show anything else. Each row is a node, as long as its CPUs; a box in it is a pod. Nodes of one HyperNode stand together.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pumice.api.hypernodes import HyperNode
from pumice.api.quantities import parse_milli
from pumice.cli import main as pumice
from pumice.scheduler.topology.members import MemberTable, Selectors
from tools.generated import settle

Raw = dict[str, Any]

_FILE = re.compile(r"^```yaml (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ pumice (simulate .*)$", re.MULTILINE)
_GROUP = "scheduling.k8s.io/group-name"
_COLOURS = (("#ddf4ff", "#0969da"), ("#fff8c5", "#9a6700"), ("#ffebe9", "#cf222e"))
"""Fill and border for each gang, queue or task, in the order in which they come."""
_WIDE, _MOST, _ROW, _LEFT, _TOP = 640, 120, 34, 86, 16
"""Pixels: of the longest row, of one CPU at most, between rows, and left and above of the first node."""


@dataclass(frozen=True)
class Pod:
    """A pod of the example.

    Attributes:
        name: Its name, without the namespace.
        cpu: Cores that it asks for.
        colour: What is coloured alike: its queue, gang or task.
        node: Where it runs at the beginning.
    """

    name: str
    cpu: float
    colour: str
    node: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture to be drawn.

    Attributes:
        page: The page, below `docs`; the picture is beside it.
        title: What it shows.
        colour: Says by a Job or PodGroup, and a task, what is coloured alike.
        file: Name of a file, without its ending, that the simulation reads; the picture has it behind the name of the page. The first
            simulation if empty.
    """

    page: str
    title: str
    colour: Callable[[Raw, str], str]
    file: str = ""

    @property
    def name(self) -> str:
        """Name of the picture."""
        return "-".join([Path(self.page).stem, *([self.file] if self.file else [])]) + ".svg"


def _queue(owner: Raw, task: str) -> str:
    del task
    return f"queue {owner['spec'].get('queue', 'default')}"


def _gang(owner: Raw, task: str) -> str:
    del task
    return f"gang {owner['metadata']['name']}"


def _task(owner: Raw, task: str) -> str:
    del owner
    return f"task {task}"


PICTURES = (
    Picture("scheduler/shares.md", "Two queues share the cluster", _queue),
    Picture("scheduler/victims.md", "A pod is evicted for a more important one", _gang),
    Picture("scheduler/victims.md", "A gang is evicted for a rack", _gang, "racks"),
    Picture("scheduler/topology.md", "Two partitions in racks below one switch", _gang),
    Picture("scheduler/plugins/task-topology.md", "Tasks in buckets on two nodes", _task),
    Picture("scheduler/plugins/network-topology-aware.md", "A gang in one of two racks", _gang),
)


def drawn(docs: Path, picture: Picture) -> str:
    """The SVG of a picture."""
    text = (docs / picture.page).read_text(encoding="utf-8")
    files = dict(_FILE.findall(text))
    wanted = f" {picture.file}." if picture.file else ""
    command = next(each for each in _COMMAND.findall(text) if wanted in each)
    named = [text for name, text in files.items() if name in command.split()]
    objects = [each for one in named for each in yaml.safe_load_all(one) if each.get("kind")]
    objects = [item for each in objects for item in each.get("items", (each,))]
    nodes = {
        each["metadata"]["name"]: _cpus(each["status"]["allocatable"])
        for each in objects
        if each["kind"] == "Node"
    }
    pods = list(_pods(objects, picture.colour))
    moments = list(_moments(pods, _simulated(files, command)))
    racks = _racks(objects, nodes)
    nodes = {name: nodes[name] for name in sorted(nodes, key=lambda name: racks.get(name, ""))}
    colours = list(dict.fromkeys(each.colour for each in pods))
    return _svg(picture.title, nodes, racks, moments, colours)


def _racks(objects: Sequence[Raw], nodes: Iterable[str]) -> dict[str, str]:
    """The HyperNodes around nodes, the widest first; in the examples each has one that names it."""
    selectors = {
        each["metadata"]["name"]: Selectors(msgspec.convert(each, HyperNode))
        for each in objects
        if each["kind"] == "HyperNode"
    }
    parents = {child: name for name, each in selectors.items() for child in each.hyper_nodes}
    table = MemberTable()
    table.set_selectors(selectors)
    for name in nodes:
        table.set_node(name, {})
    found: dict[str, str] = {}
    for name, holders in table.holders.items():
        way = list(holders)
        while way[0] in parents:
            way.insert(0, parents[way[0]])
        found[name] = " › ".join(way)
    return found


def _simulated(files: dict[str, str], command: str) -> list[Raw]:
    """The cycles of a simulation of files."""
    out, here = io.StringIO(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(out):
                pumice([*shlex.split(command), "-o", "json"])
        finally:
            os.chdir(here)
    cycles: list[Raw] = json.loads(out.getvalue())["cycles"]
    return cycles


def _cpus(resources: Raw) -> float:
    return parse_milli(str(resources["cpu"])) / 1000


def _asked(spec: Raw) -> float:
    return sum(_cpus(each["resources"]["requests"]) for each in spec["containers"])


def _pods(objects: Sequence[Raw], colour: Callable[[Raw, str], str]) -> Iterator[Pod]:
    """The pods of the files, and those that their Jobs get."""
    groups = {each["metadata"]["name"]: each for each in objects if each["kind"] == "PodGroup"}
    for each in objects:
        name, spec = each["metadata"]["name"], each.get("spec") or {}
        if each["kind"] == "Pod":
            group = groups.get(each["metadata"].get("annotations", {}).get(_GROUP, ""))
            coloured = colour(group, "") if group is not None else "pod of no gang"
            yield Pod(name, _asked(spec), coloured, spec.get("nodeName", ""))
        elif each["kind"] == "Job":
            for task in spec["tasks"]:
                for index in range(task["replicas"]):
                    cpu = _asked(task["template"]["spec"])
                    yield Pod(f"{name}-{task['name']}-{index}", cpu, colour(each, task["name"]))


Moment = tuple[str, list[Pod], set[str]]
"""Its name, the pods with their nodes, and which of them are evicted."""


def _moments(pods: Sequence[Pod], cycles: Sequence[Raw]) -> Iterator[Moment]:
    """What is where before the first cycle, if anything is, and after each."""
    if any(each.node for each in pods):
        yield "before", list(pods), set()
    leaving: set[str] = set()
    for number, cycle in enumerate(cycles, 1):
        evicted = {each.partition("/")[2] for each in cycle["evicted"]}
        places = {each.partition("/")[2]: node for each, node in cycle["binds"].items()}
        pods = [
            replace(each, node=places.get(each.name, each.node))
            for each in pods
            if each.name not in leaving
        ]
        leaving = evicted
        yield f"cycle {number}", list(pods), evicted


def _svg(
    title: str,
    nodes: dict[str, float],
    racks: dict[str, str],
    moments: Sequence[Moment],
    colours: Sequence[str],
) -> str:
    rows: list[str] = []
    told: list[str] = []
    longest = max(
        [*nodes.values(), *(sum(p.cpu for p in pods if not p.node) for _, pods, _ in moments)]
    )
    scale = min(_MOST, _WIDE / longest)
    everything = [each for _, pods, _ in moments for each in pods]
    fitting = (
        parts
        for parts in (3, 2)
        if all(7 * len(_short(each.name, parts)) <= each.cpu * scale for each in everything)
    )
    parts = next(fitting, 1)
    is_dashed = any(evicted or any(not p.node for p in pods) for _, pods, evicted in moments)
    y, right = _TOP, 0.0
    for name, pods, evicted in moments:
        if len(moments) > 1:
            rows.append(_text(16, y + 12, name, weight="600"))
            y += 22
        rack = ""
        for node, cpus in nodes.items():
            if racks.get(node, "") != rack:
                rack = racks.get(node, "")
                rows.append(_text(_LEFT, y + 12, rack))
                y += 18
            here = sorted((each for each in pods if each.node == node), key=lambda pod: pod.colour)
            rows.append(_text(16, y + 19, node))
            rows.append(
                f'<rect x="{_LEFT}" y="{y}" width="{cpus * scale:g}" height="28" rx="4" fill="#f6f8fa" stroke="#8c959f"/>'
            )
            rows += _boxes(here, y, scale, parts, colours, evicted)
            told.append(f"{name}, {node}: {', '.join(each.name for each in here) or 'empty'}")
            y, right = y + _ROW, max(right, _LEFT + cpus * scale)
        waiting = sorted((each for each in pods if not each.node), key=lambda pod: pod.colour)
        if waiting:
            rows.append(_text(16, y + 19, "waiting"))
            rows += _boxes(waiting, y, scale, parts, colours, {each.name for each in waiting})
            told.append(f"{name}, waiting: {', '.join(each.name for each in waiting)}")
            y, right = y + _ROW, max(right, _LEFT + sum(each.cpu for each in waiting) * scale)
        y += 10
    x = _LEFT
    for each in colours:
        fill, line = _COLOURS[colours.index(each)]
        rows.append(
            f'<rect x="{x}" y="{y}" width="14" height="14" rx="3" fill="{fill}" stroke="{line}"/>'
        )
        rows.append(_text(x + 20, y + 12, each))
        x += 40 + 7 * len(each)
    if is_dashed:
        rows.append(_text(x, y + 12, "dashed: waits, or is evicted"))
        x += 180
    width, height = int(max(right, x)) + 16, y + 30
    font = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            f' aria-labelledby="title desc" font-family="{font}" font-size="13" fill="#1f2328">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape("; ".join(told))}</desc>',
            f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8" fill="#ffffff" stroke="#d0d7de"/>',
            *rows,
            "</svg>\n",
        )
    )


def _short(name: str, parts: int) -> str:
    """The last parts of a pod's name, which are its Job, its task and its index."""
    return "-".join(name.split("-")[-parts:])


def _boxes(
    pods: Sequence[Pod], y: int, scale: float, parts: int, colours: Sequence[str], dashed: set[str]
) -> Iterator[str]:
    x = float(_LEFT)
    for each in pods:
        fill, line = _COLOURS[colours.index(each.colour)]
        dash = ' stroke-dasharray="4 3" fill-opacity="0.5"' if each.name in dashed else ""
        width = each.cpu * scale
        yield (
            f'<rect x="{x + 2:g}" y="{y + 2}" width="{width - 4:g}" height="24" rx="3" '
            f'fill="{fill}" stroke="{line}"{dash}/>'
        )
        shown = _short(each.name, parts)
        yield _text(x + width / 2, y + 19, shown, anchor="middle", size=11)
        x += width


def _text(
    x: float, y: float, text: str, *, weight: str = "", anchor: str = "", size: int = 0
) -> str:
    more = f' font-weight="{weight}"' if weight else ""
    more += f' text-anchor="{anchor}"' if anchor else ""
    more += f' font-size="{size}"' if size else ""
    return f'<text x="{x:g}" y="{y:g}"{more}>{escape(text)}</text>'


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the pictures, or check them; exit code 1 if one is missing or stale."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--check", action="store_true", help="only compare, exit 1 on a difference")
    options = parser.parse_args(arguments)
    fresh = [
        settle(
            (options.docs / each.page).with_name(each.name),
            drawn(options.docs, each),
            check=options.check,
        )
        for each in PICTURES
    ]
    return 0 if all(fresh) else 1


if __name__ == "__main__":
    sys.exit(main())

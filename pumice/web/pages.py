"""The HTML of the views: data in, a page out. Every text is escaped by Jinja, and no page has code or styles within it."""

import shlex
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from pumice.api.durations import human_age
from pumice.api.quantities import QuantityError, format_milli, parse_milli

Data = dict[str, Any]
Query = Mapping[str, str]

_TITLES = {"waiting": "Waiting", "queues": "Queues", "nodes": "Nodes", "jobs": "Jobs"}
_ROWS = {"waiting": "gangs", "queues": "queues", "nodes": "nodes", "jobs": "jobs"}
"""The key of the rows of a view, for filters."""
_PARTS = {"queues": "waiting", "nodes": "pods"}
"""The key of what is filtered within a row; a row of which nothing is left goes."""
_FILTERS = ("namespace", "queue", "user")
_OPENED = {"nodes": ("node",), "gang": ("pod", "logs")}
"""What else an address says."""
_COLOURS = 12
_LEGEND = 12
_PODS = 8
"""Pods of a node that are named on it; its own page has all."""
_ROWS_KEPT = 20_000
_SINCE = Markup('<td><time datetime="{0}" title="{0}">')
_END_OF_ROW = b"</time></td></tr>"
"""After an age, which differs each time."""
_ROWS_HERE = b"<!-- rows -->"
"""Where a page has its rows; texts are escaped and have no such words."""
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


class Commands:
    """How commands name the cluster that the page shows."""

    def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
        """Commands with the options with which the page was started."""
        pairs = (("--kubeconfig", kubeconfig), ("--context", context))
        self._options = "".join(f" {key} {shlex.quote(value)}" for key, value in pairs if value)

    def of(self, name: str, data: Data, namespace: str | None) -> list[str]:
        """Commands that say what a view says."""
        where = f" -n {shlex.quote(namespace)}" if namespace else " -A"
        if name == "gang":
            return self._of_gang(data)
        found = {
            "waiting": [
                f"pumice explain{where}",
                f"kubectl get podgroups.scheduling.volcano.sh{where}",
            ],
            "queues": ["pumice queue list", "kubectl get queues.scheduling.volcano.sh"],
            "nodes": ["pumice explain hypernodes", "kubectl get nodes"],
            "jobs": [f"pumice job list{where}", f"kubectl get jobs.batch.volcano.sh{where}"],
        }[name]
        return [f"{each}{self._options}" for each in found]

    def _of_gang(self, data: Data) -> list[str]:
        for kind, resource in (("job", "jobs.batch.volcano.sh"), ("pod", "pods")):
            if kind in data:
                namespace, _, name = (shlex.quote(each) for each in data[kind].partition("/"))
                return [
                    f"pumice explain {kind} {name} -n {namespace}{self._options}",
                    f"kubectl describe {resource} {name} -n {namespace}{self._options}",
                ]
        return []


def taken(name: str) -> tuple[str, ...]:
    """What an address of a view may say."""
    return (*(_FILTERS if name in _ROWS else ()), *_OPENED.get(name, ()))


def filtered(name: str, data: Data, query: Query) -> Data:
    """The data of a view with what a query asks for, alone."""
    asked = {key: query[key] for key in _FILTERS if key in query}
    rows, parts = _ROWS[name], _PARTS.get(name)
    kept = data[rows]
    if name == "queues" and (queue := asked.pop("queue", None)):
        kept = [each for each in kept if each["queue"] == queue]
    if asked and parts:
        narrowed = [
            {**row, parts: [each for each in row[parts] if _is_asked(_about(each, data), asked)]}
            for row in kept
        ]
        kept = [row for row in narrowed if row[parts]]
    elif asked:
        kept = [each for each in kept if _is_asked(each, asked)]
    return {**data, rows: kept}


def _is_asked(about: Data, asked: Query) -> bool:
    return all(about.get(key) == value for key, value in asked.items())


def _about(part: Data, data: Data) -> Data:
    """Whose a pod of a node, or a gang that waits in a queue, is."""
    gang = part.get("podGroup") or part["gang"]
    namespace, _, _ = str(part.get("pod") or gang).partition("/")
    return {"namespace": namespace, **data["owners"].get(gang, {})}


class Pages:
    """The pages."""

    def __init__(self, commands: Commands) -> None:
        """Load the templates."""
        self._commands = commands
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._rows: dict[str, dict[str, tuple[Any, Any]]] = {}
        self._templates.filters |= {
            "amount": amount,
            "amounts": amounts,
            "colour": colour,
            "path": _path,
            "words": _words,
        }

    def view(self, name: str, data: Data, query: Query, state: Data) -> bytes:
        """A view.

        Args:
            name: Which one.
            data: Its data.
            query: Filters, and what is opened.
            state: `version`, `namespace`, `now` and `unreachableSince`.
        """
        now = state["now"]
        namespace = query.get("namespace") or state["namespace"]
        title = (
            _TITLES.get(name)
            or f"{data.get('job') or data.get('pod') or data.get('gang') or 'Gang'}"
        )
        more: Data = {}
        if name == "queues":
            more["queues"] = [_with_bars(each) for each in data["queues"]]
        elif name == "nodes":
            more = self._groups(data)
            more["node"] = next((n for n in data["nodes"] if n["name"] == query.get("node")), None)
        if name != "gang":
            more["choices"] = _choices(name, data, query)
        page = self._page(
            f"{name}.html",
            title=title,
            data=data,
            query=query,
            json=_with(query, format="json"),
            commands=self._commands.of(name, data, namespace),
            ago=lambda text: human_age(text, now),
            state=state,
            **more,
        )
        if name != "waiting":
            return page
        start, _, end = page.partition(_ROWS_HERE)
        return b"%b%b%b" % (start, self._gangs(data["gangs"], now), end)

    def loading(self, name: str, kinds: Sequence[str], state: Data) -> bytes:
        """What is shown until everything is read."""
        return self._page("loading.html", title=_TITLES.get(name, "Gang"), kinds=kinds, state=state)

    def error(self, code: int, message: str) -> bytes:
        """Why there is no page."""
        return self._page("error.html", title=str(code), message=message)

    def _page(self, template: str, **values: Any) -> bytes:
        values.setdefault("state", {"unreachableSince": None, "version": 0, "namespace": None})
        values["views"] = _TITLES
        values["clock"] = time.strftime("%H:%M:%S")
        return self._templates.get_template(template).render(values).encode()

    # -- many rows: what is said of most of them stays as it is ----------------------------------

    def _kept(self, kind: str) -> dict[str, tuple[Any, Any]]:
        """Rows by name, each with what it was made of."""
        kept = self._rows.setdefault(kind, {})
        if len(kept) > _ROWS_KEPT:
            kept.clear()
        return kept

    def _gangs(self, gangs: Sequence[Data], now: float) -> bytes:
        """The rows of gangs that wait."""
        row = self._templates.get_template("gang_row.html").module.row  # type: ignore[attr-defined]
        kept = self._kept("gangs")
        found = []
        for gang in gangs:
            known = kept.get(gang["podGroup"])
            if known is None or known[0] != gang:
                since = gang["since"] or ""
                said = f"{row(gang)}{_SINCE.format(since)}".encode()
                known = kept[gang["podGroup"]] = gang, (said, since)
            said, since = known[1]
            found.append(b"%b%b%b" % (said, human_age(since, now).encode(), _END_OF_ROW))
        return b"\n".join(found)

    def _groups(self, data: Data) -> Data:
        """Nodes by HyperNode or zone, each as a cell; and the gangs that have most pods."""
        kept = self._kept("nodes")
        cell = self._templates.get_template("node_cell.html").module.cell  # type: ignore[attr-defined]
        groups: dict[str, list[str]] = {}
        pods: dict[str, int] = {}
        for node in data["nodes"]:
            known = kept.get(node["name"])
            if known is None or known[0] is not node:
                on = Counter(each["gang"] for each in node["pods"] if each["gang"])
                shown = cell(node["name"], _classes(node, on), _text(node))
                known = kept[node["name"]] = node, (on, shown)
            on, shown = known[1]
            for gang, count in on.items():
                pods[gang] = pods.get(gang, 0) + count
            groups.setdefault(node["group"], []).append(shown)
        most = sorted(pods.items(), key=lambda each: (-each[1], each[0]))[:_LEGEND]
        legend = [(gang, data["gangs"][gang], count) for gang, count in most]
        joined = [
            (group, len(cells), Markup("\n".join(cells))) for group, cells in sorted(groups.items())
        ]
        return {"groups": joined, "legend": legend}


# -- values ------------------------------------------------------------------------------------


def amount(resource: str, quantity: str | None) -> str:
    """A quantity for people: memory in Mi or Gi, others as they are."""
    if quantity is None:
        return "-"
    try:
        milli = parse_milli(quantity)
    except QuantityError:
        return quantity
    if resource != "cpu":
        whole = milli // 1000
        for unit, size in reversed(_BINARY.items()):
            if ("memory" in resource or "storage" in resource) and abs(whole) >= size:
                return f"{whole / size:.4g}{unit}"
    return format_milli(milli) if milli % 1000 == 0 else f"{milli / 1000:.6g}"


def amounts(found: Mapping[str, str], but: Iterable[str] = ("pods", "ephemeral-storage")) -> str:
    """Several quantities: `4 cpu, 8Gi memory`."""
    left = [name for name in found if name not in but]
    left.sort(key=lambda each: ({"cpu": 0, "memory": 1}.get(each, 2), each))
    return ", ".join(f"{amount(name, str(found[name]))} {name}" for name in left)


def colour(gang: str | None) -> str:
    """The class of a gang's colour: always the same for a name."""
    return f"g{zlib.crc32(gang.encode()) % _COLOURS}" if gang else "none"


def _path(*parts: str) -> str:
    return "/".join(quote(each, safe="") for each in parts)


def _words(key: str) -> str:
    """A key of data as words: `largestFree` becomes `largest free`."""
    if not key.isalpha():
        return key
    return "".join(f" {each.lower()}" if each.isupper() else each for each in key).strip()


def _with(query: Query, **more: str) -> str:
    return f"?{urlencode({**query, **more})}"


def _choices(name: str, data: Data, query: Query) -> dict[str, list[str]]:
    """What each filter may be set to."""
    found = {key: {query[key]} if key in query else set() for key in _FILTERS}
    for each in [] if name == "nodes" else data[_ROWS[name]]:
        for key in _FILTERS:
            found[key].add(each.get(key))
    for gang, each in data.get("owners", {}).items():
        for key, value in each.items():
            found[key].add(value)
        found["namespace"].add(gang.partition("/")[0])
    return {key: sorted(filter(None, values)) for key, values in found.items()}


# -- queues ------------------------------------------------------------------------------------


def _with_bars(queue: Data) -> Data:
    """A queue with the widths of its bars, in percent of its greatest amount, by resource."""
    bars = {}
    for resource, columns in queue["resources"].items():
        values = {key: parse_milli(value) for key, value in columns.items() if value is not None}
        used = values.get("used", 0)
        most = max([*values.values(), used + values.get("asked", 0), 1])
        bars[resource] = {key: round(100 * value / most, 2) for key, value in values.items()}
    return {**queue, "bars": bars}


# -- nodes -------------------------------------------------------------------------------------


def _classes(node: Data, on: Mapping[str, int]) -> str:
    """The colour of the gang that has most pods on a node, and marks."""
    marks = [colour(max(on, key=lambda each: (on[each], each), default=None))]
    if node["usable"] is False:
        marks.append("unusable")
    if not (node["ready"] and node["schedulable"]):
        marks.append("closed")
    return " ".join(marks)


def _text(node: Data) -> str:
    """What is said of a node at its cell."""
    free = ", ".join(
        f"{amount(name, node['free'][name])} of {amount(name, has)} {name}"
        for name, has in node["allocatable"].items()
        if name not in ("pods", "ephemeral-storage")
    )
    said = [f"{node['name']}: {free} free"]
    if not node["ready"]:
        said.append("not ready")
    elif not node["schedulable"]:
        said.append("cordoned")
    if node["usable"] is False:
        said.append("no pod that waits fits")
    names = [each["pod"] for each in node["pods"][:_PODS]]
    if len(node["pods"]) > _PODS:
        names.append(f"{len(node['pods']) - _PODS} more")
    said.append(f"pods: {', '.join(names)}" if names else "no pods")
    return "; ".join(said)

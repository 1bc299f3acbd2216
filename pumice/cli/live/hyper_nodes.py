"""The tree of HyperNodes, with what is free in each domain, for `pumice explain hypernodes`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.api.fields import plain
from pumice.api.messages import counted, listed
from pumice.api.quantities import MILLI, format_milli, parse_milli
from pumice.api.requests import Amounts
from pumice.cli.exits import UserError
from pumice.cli.output import table
from pumice.scheduler.explain.deficits import amount_text
from pumice.scheduler.explain.nearest import nodes_of
from pumice.scheduler.simulate import Simulation
from pumice.scheduler.topology.tree import Domain

_NOT_SHOWN = ("pods", "ephemeral-storage")
_NAMED = 3
"""Nodes in no HyperNode that the sentence names."""


def of_hyper_nodes(simulation: Simulation, name: str, forbidden: list[str]) -> dict[str, Any]:
    """All HyperNodes, or one with those in it.

    Args:
        simulation: The HyperNodes, nodes and pods that were read.
        name: Name of a HyperNode; empty for all.
        forbidden: What the user may not read, as text. Without the pods it is not known what is free.

    Raises:
        UserError: There is no HyperNode of this name.
    """
    state, network = simulation.state, simulation.state.network
    state.settle(0.0)
    top = network.domains.get(name) if name else network.root
    if top is None:
        raise UserError(f'there is no HyperNode "{name}"')
    rows = state.nodes.rows()
    idle = np.maximum(rows.allocatable - rows.used, 0)
    hides_pods = any(each.startswith("pods") for each in forbidden)

    def described(domain: Domain) -> dict[str, Any]:
        mask = network.mask(domain)
        has = state.axis.amounts(rows.allocatable[mask].sum(axis=0))
        free = state.axis.amounts(idle[mask].sum(axis=0))
        return {
            "name": domain.name or None,
            "tier": domain.tier,
            "tierName": domain.tier_name,
            "parent": domain.parent.name or None if domain.parent else None,
            "nodes": int(mask.sum()),
            "allocatable": _quantities(has, has),
            "free": None if hides_pods else _quantities(free, has),
        }

    domains = list(_from_top(top))
    inside = {each.name for each in domains}
    outside = [
        state.nodes.names[row]
        for row in network.mask(network.root).nonzero()[0]
        if network.narrowest([int(row)]) is network.root
    ]
    return {
        "message": _one(top) if name else _all(network.domains, outside),
        "cluster": None if name else described(top),
        "hyperNodes": [described(each) for each in domains if each.name],
        "outside": [] if name else outside,
        "faults": [
            {"hyperNode": each, "message": text}
            for each, texts in network.faults.items()
            if each in inside
            for text in texts
        ],
        "notAllowed": forbidden,
    }


def _from_top(top: Domain) -> Iterator[Domain]:
    """A domain and all below it, each before those in it."""
    ahead = [top]
    while ahead:
        domain = ahead.pop()
        yield domain
        ahead.extend(reversed(domain.children))


def _all(domains: Mapping[str, Domain], outside: Sequence[str]) -> str:
    if not domains:
        return "There are no HyperNodes"
    tiers = len({each.tier for each in domains.values()})
    found = f"{counted(len(domains), 'HyperNode')} of {counted(tiers, 'tier')}"
    if not outside:
        return f"{found}; every ready node is in one"
    more = f", and {len(outside) - _NAMED} more" if len(outside) > _NAMED else ""
    return f"{found}; {nodes_of(len(outside))} in none of them: {', '.join(outside[:_NAMED])}{more}"


def _one(domain: Domain) -> str:
    name = f' "{domain.tier_name}"' if domain.tier_name else ""
    around = [each.name for each in domain.and_above() if each.name][1:]
    where = f", in {listed(around, ', in ')}" if around else ""
    return f"HyperNode {domain.name} is of tier {domain.tier}{name}{where}"


def _quantities(amounts: Amounts, has: Amounts) -> dict[str, str]:
    """Quantities of what nodes have, by name; of what is used up there is 0."""
    return {name: format_milli(amounts.get(name, 0)) for name in sorted(has)}


def parts(explanation: Mapping[str, Any]) -> Iterator[str]:
    """The tree as a table, and what is set aside, as text."""
    domains = explanation["hyperNodes"]
    if explanation["cluster"] is not None and domains:
        domains = [explanation["cluster"], *domains]
    if not domains:
        return
    amounts = sorted({name for each in domains for name in each["allocatable"]})
    columns = [name for name in amounts if name not in _NOT_SHOWN]
    depths: dict[str | None, int] = {}
    rows = []
    for each in domains:
        depth = depths[each["name"]] = 1 + depths.get(each["parent"], -1)
        tier = f"{each['tier']} {each['tierName']}".rstrip()
        name = each["name"] or "(cluster)"
        rows.append(
            (
                f"{'  ' * depth}{name}",
                tier,
                str(each["nodes"]),
                *(_room(each, column) for column in columns),
            )
        )
    yield "\n" + table(("hypernode", "tier", "nodes", *(f"free {name}" for name in columns)), rows)
    faults = explanation["faults"]
    if faults:
        yield "\nSet aside:"
        yield from (plain(f"  {each['hyperNode']}: {each['message']}") for each in faults)


def _room(domain: Mapping[str, Any], name: str) -> str:
    """What is free of what there is: `12 of 16`."""
    if name not in domain["allocatable"]:
        return "-"
    has = _for_people(name, domain["allocatable"][name])
    return has if domain["free"] is None else f"{_for_people(name, domain['free'][name])} of {has}"


def _for_people(name: str, quantity: str) -> str:
    milli = parse_milli(quantity)
    return amount_text(name, milli if name == "cpu" else milli // MILLI)

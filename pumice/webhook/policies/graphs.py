"""Circles in what waits for what.

CEL has no loops, only passes over lists. So the graph is first peeled: what waits for nothing that is left goes, a
few times over, which takes nearly every graph apart. Of what is left then it is reckoned what lies just so many steps
ahead, twice as many with each pass. A way of more steps than there are things to pass goes round in a circle.
"""

from pumice.webhook.policies.cel import one

__all__ = ["circle", "reaching"]

_PEELS = 6
_DOUBLINGS = 7
_MOST = 2**_DOUBLINGS
"""How much may be left after peeling; of more it is not told whether there is a circle."""


def reaching(names: str, awaited: str) -> dict[str, str]:
    """Variables: what is left after peeling, and of that what lies ahead of what.

    Args:
        names: Expression for the list of all names; of equal ones the last counts.
        awaited: Expression for the list, in the same order, of the lists of names that each waits for.
    """
    left = f"$left{_PEELS}"
    found = {
        "left0": f"{names}.transformList(i, n, {awaited}[i].size() > 0 && {names}.lastIndexOf(n) == i, n)"
    }
    for peel in range(1, _PEELS + 1):
        before = f"$left{peel - 1}"
        found[f"left{peel}"] = (
            f"{before}.filter(n, {awaited}[{names}.lastIndexOf(n)].exists(a, a != n && a in {before}))"
        )
    found["ahead0"] = (
        f"{left}.map(n, {left}.filter(a, a != n && a in {awaited}[{names}.lastIndexOf(n)]))"
    )
    for doubling in range(1, _DOUBLINGS + 1):
        before = f"$ahead{doubling - 1}"
        found[f"ahead{doubling}"] = (
            f"{before}.map(w, w.size() == 0 ? w : "
            f"{left}.filter(m, w.exists(a, m in {before}[{left}.indexOf(a)])))"
        )
    found["endless"] = (
        f"{left}.size() == 0 || {left}.size() > {_MOST} ? [] : "
        f"{left}.transformList(i, n, $ahead{_DOUBLINGS}[i].size() > 0, n)"
    )
    return found


def circle(path: str, message: str) -> str:
    """The problem that something waits in a circle.

    Args:
        path: Where, an expression.
        message: What to say before the names, a text.
    """
    return one("$endless.size() > 0", path, f"'{message}' + $endless.join(', ')")

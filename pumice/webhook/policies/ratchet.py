"""Ratcheting in CEL: of what is wrong with an object the part that an update brings.

What was wrong before and still is where it was does not count, nor what has moved with its item of a list. That is
told by how often the same is said, whatever the positions, so that a list which loses one of two bad items is let be.
"""

from collections.abc import Collection

from pumice.webhook.policies.form import identifier

__all__ = ["keys_of", "rest_of"]

_POSITION = "'^[0-9]+[]]'"
_SAME = "a[0] == b[0] && a[1] == b[1]"
_NO_MORE = "size(a) > 2 && a[3] == b[3] && double(a[2]) <= double(b[2])"


def keys_of(found: str) -> str:
    """Where something is wrong and what, without the positions of items.

    Args:
        found: What is wrong, the name of a variable.
    """
    bare = f"s.matches({_POSITION}) ? s.substring(s.indexOf(']')) : s"
    return f"variables.{found}.map(p, (p[0] + ' ' + p[1]).split('[').map(s, {bare}).join('['))"


def rest_of(
    code: str,
    standing: Collection[str],
    *,
    covered: bool = False,
    shifted: tuple[str, str] | None = None,
    keyed: bool = False,
) -> str:
    """What of the problems of a rule, in variable `<code>_new`, an update brings.

    Args:
        code: Of the rule.
        standing: Codes of what may have been wrong before, in `<code>_old`.
        covered: Whether something may be covered by another rule.
        shifted: A list that may be covered as a whole, and the variable with the paths of which this holds.
        keyed: Whether there are `<code>_keys` and `<code>_old_keys`, by which items are known again.
    """
    own = f"variables.{identifier(code)}"
    found = f"{own}_new"
    before = [
        f"!variables.{identifier(each)}_old.exists(b, {_SAME} || ({_NO_MORE}))" for each in standing
    ]
    if covered:
        inside = _inside("c")
        if shifted is not None:
            path, items = shifted
            inside = f"c == '{path}' ? variables.{items}.exists(s, {_inside('s')}) : {inside}"
        before.insert(0, f"!variables.covered.exists(c, {inside})")
    if keyed:
        now, then = (
            f"{keys}.filter(k, k == {own}_keys[i]).size()"
            for keys in (f"{own}_keys", f"{own}_old_keys")
        )
        before.append(f"{now} > {then}")
    return (
        f"request.operation != 'UPDATE' || {found}.size() == 0 ? {found} : "
        f"{found}.transformList(i, a, {' && '.join(before)}, a)"
    )


def _inside(path: str) -> str:
    return f"a[0] == {path} || a[0].startsWith({path} + '.') || a[0].startsWith({path} + '[')"

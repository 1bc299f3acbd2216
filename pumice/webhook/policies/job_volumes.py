"""Volumes of a Job in CEL."""

from pumice.plugins.svc import MOUNT_PATH
from pumice.webhook.policies.cel import (
    amount,
    each,
    is_subdomain,
    joined,
    listed,
    mapped,
    one,
    quoted,
    readable,
    texts,
    word,
)
from pumice.webhook.policies.form import Form

__all__ = ["forms", "variables"]

_ALONE = "ReadWriteOncePod"
_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", _ALONE)


def variables() -> dict[str, str]:
    """Paths and names of the volumes, and the claims that come with them."""
    return {
        "volumes": "$spec.?volumes.orValue([])",
        "paths": "$volumes.map(v, string(v.?mountPath.orValue('')))",
        "claimNames": "$volumes.map(v, string(v.?volumeClaimName.orValue('')))",
        "claims": "$volumes.map(v, v.?volumeClaim.orValue(null))",
    }


def forms(path: str, creating: str) -> tuple[Form, ...]:
    """The forms, for the volumes of a Job.

    Args:
        path: Of its spec.
        creating: Expression for whether it is a new one; later it is the controller that names the claims.
    """
    return (
        _paths(path),
        *_names(path, creating),
        Form("VOL-CLAIM", joined(*_claims(f"'{path}.volumes[' + string(i) + '].volumeClaim."))),
        Form("VOL-TAKEN", joined(_hosts_files(path), _mounts(path))),
    )


def _paths(path: str) -> Form:
    where = f"'{path}.volumes[' + string(i) + '].mountPath'"
    return Form(
        "VOL-DUP",
        each(
            "$paths",
            "i, p",
            "p != '' && $paths.indexOf(p) != i",
            where,
            joined(
                word("p"),
                f"' is already the path of {path}.volumes['",
                "string($paths.indexOf(p))",
                "']'",
            ),
        ),
    )


def _names(path: str, creating: str) -> tuple[Form, ...]:
    named = f"'{path}.volumes[' + string(i) + '].volumeClaimName'"
    return (
        Form(
            "VOL-NONE",
            each(
                "$claimNames",
                "i, n",
                "n == '' && $claims[i] == null",
                named,
                "'must name an existing claim, or volumeClaim must describe a new one'",
            ),
        ),
        Form(
            "VOL-BOTH",
            each(
                "$claimNames",
                "i, n",
                f"n != '' && $claims[i] != null && {creating}",
                named,
                joined("'must not be set together with volumeClaim, found '", word("n")),
            ),
        ),
        Form(
            "VOL-NAME",
            each(
                "$claimNames",
                "i, n",
                f"n != '' && !{is_subdomain('n')}",
                named,
                joined("'must be a DNS subdomain, found '", word("n")),
            ),
        ),
        Form(
            "VOL-TWICE",
            each(
                "$claimNames",
                "i, n",
                "n != '' && $claimNames.indexOf(n) != i",
                named,
                joined(word("n"), "' is mounted more than once; all paths show the same files'"),
            ),
        ),
    )


def _claims(where: str) -> tuple[str, ...]:
    """What is wrong with claims that come with the Job: problem lists, to be joined."""
    modes = listed("c.?accessModes.orValue([])")
    storage = f"{mapped(mapped('c.?resources.orValue({})') + '.?requests.orValue({})')}.?storage.orValue(null)"
    name, mode = "c.?storageClassName.orValue('')", "c.?volumeMode.orValue(null)"
    positive = f"{readable(storage)} && sign({amount(storage)}) > 0"
    known = texts(_MODES)

    def claim(condition: str, field: str, message: str) -> str:
        return each("$claims", "i, c", f"c != null && ({condition})", f"{where}{field}'", message)

    return (
        claim(
            f"{modes}.size() == 0 || !{modes}.all(m, m in {known})",
            "accessModes",
            f"'must be a list of at least one of {', '.join(_MODES)}'",
        ),
        claim(
            f"'{_ALONE}' in {modes} && {modes}.exists(m, m != '{_ALONE}')",
            "accessModes",
            f"'{_ALONE} must stand alone'",
        ),
        claim(
            f"!({positive})",
            "resources.requests.storage",
            "'must say how large the volume is, such as 10Gi'",
        ),
        claim(
            f"type({name}) == string && {name} != '' && !{is_subdomain(name)}",
            "storageClassName",
            joined("'must be a DNS subdomain, found '", word(name)),
        ),
        claim(
            f"{mode} != null && !({mode} in ['Filesystem', 'Block'])",
            "volumeMode",
            "'must be Filesystem or Block'",
        ),
    )


def _hosts_files(path: str) -> str:
    mounted = quoted(MOUNT_PATH)
    return one(
        f"'svc' in $plugged && {mounted} in $paths",
        f"'{path}.volumes[' + string($paths.indexOf({mounted})) + '].mountPath'",
        f"'{MOUNT_PATH} is where plugin svc mounts its hosts files, which are left out then'",
    )


def _mounts(path: str) -> str:
    return each(
        "$mounts",
        "i, m",
        "$paths.size() > 0 && m.path in $paths",
        "m.at + '.' + m.member",
        joined(
            word("m.path"), f"' stays what it is here: the volume in {path}.volumes is not mounted'"
        ),
    )

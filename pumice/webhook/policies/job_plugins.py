"""Job plugins in CEL: their names, what they name after the Job, and the task that they cannot do without.

Arguments are read word by word; a word that is the value of the one before it is not told from a flag.
"""

from pumice.plugins import builtin
from pumice.webhook.policies.cel import LABEL, each, joined, one, texts, word
from pumice.webhook.policies.form import Form

__all__ = ["KNOWN_PLUGINS", "dependent", "forms", "variables"]

KNOWN_PLUGINS = "$jobPlugins"
"""Stands within a list of texts for the names of plugins that are not built in."""

_SERVICE = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


def dependent() -> dict[str, list[str]]:
    """Plugins that others cannot do without, each with those that need it, near and far."""
    registry = builtin()
    found: dict[str, list[str]] = {}
    for name in sorted(registry.names):
        pending = list(registry.requires(name))
        while pending:
            needed = pending.pop(0)
            if name not in found.setdefault(needed, []):
                found[needed].append(name)
                pending.extend(registry.requires(needed))
    return dict(sorted(found.items()))


def variables() -> dict[str, str]:
    """The plugins, and their names with those that are added to them."""
    added = " + ".join(
        f"({texts(by)}.exists(p, p in $plugins) ? ['{name}'] : [])"
        for name, by in dependent().items()
    )
    return {
        "plugins": "$spec.?plugins.orValue({})",
        "plugged": f"$plugins.map(p, string(p)) + {added}",
    }


def forms(path: str) -> tuple[Form, ...]:
    """The forms, for the plugins of a Job.

    Args:
        path: Of its spec.
    """
    known = sorted(builtin().names)
    return (
        Form(
            "JOB-PLUGIN",
            each(
                "$plugins.map(p, string(p))",
                "i, p",
                f"!(p in {texts([*known, KNOWN_PLUGINS])})",
                f"'{path}.plugins.' + p",
                joined("'there is no plugin '", word("p"), f"', known are {', '.join(known)}'"),
            ),
        ),
        _task(path, "JOB-MPI-MASTER", "mpi", "master"),
        _task(path, "JOB-RAY-HEAD", "ray", "head"),
        _task(path, "JOB-MXNET-SCHEDULER", "mxnet", "scheduler", "$total > 1 || $tasks.size() > 1"),
        Form("JOB-PLUGIN-NAME", joined(*_names())),
    )


def _names() -> tuple[str, ...]:
    found = []
    for plugin, what, suffix, pattern in (
        ("svc", "a Service", "", _SERVICE),
        ("svc", "a volume", "-svc", LABEL),
        ("ssh", "a Secret and its volume", "-ssh", LABEL),
        ("ray", "a Service", "-head-svc", _SERVICE),
    ):
        name = f"($name + '{suffix}')"
        message = (
            f"'plugin {plugin} names {what} \"' + {name} + '\" after the Job, which must consist of at most 63 lower "
            "case letters, digits and -'"
        )
        wrong = f"'{plugin}' in $plugged && (size({name}) > 63 || !{name}.matches('{pattern}'))"
        found.append(one(wrong, "'metadata.name'", message))
    return tuple(found)


def _task(path: str, code: str, plugin: str, argument: str, when: str = "true") -> Form:
    """The form that a plugin has the task which an argument of it names, where a condition holds."""
    registered = builtin().get(plugin)
    default = registered.arguments.defaults[argument] if registered is not None else ""
    words = f"$plugins['{plugin}'].map(w, string(w))"
    given = (
        f"{words}.transformList(i, w, w.matches('^--?{argument}=') || (w.matches('^--?{argument}$') && "
        f"i + 1 < {words}.size()), w.contains('=') ? w.substring(w.indexOf('=') + 1) : {words}[i + 1])"
    )
    wanted = f"([{default!r}] + {given})"
    last = f"{wanted}[{wanted}.size() - 1]"
    return Form(
        code,
        one(
            f"'{plugin}' in $plugins && ({when}) && !({last} in $names)",
            f"'{path}.tasks'",
            joined(
                f"'plugin {plugin} needs the task '", word(last), f"', which --{argument} names'"
            ),
        ),
    )

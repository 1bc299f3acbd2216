"""Pod templates in CEL: what goes wrong most often about containers and their surroundings.

The schema of the CRD says of a template only that its containers have names, so whatever else is looked at may be of
any type; what has another type than it should is passed over here. The many other rules about templates are the
webhook's: each of them can be said, all together cost more than the API server grants. Without it the API server
refuses the pods instead, when the controller makes them.
"""

from pumice.webhook.policies.cel import (
    amount,
    each,
    integral,
    is_label,
    is_simple,
    joined,
    listed,
    mapped,
    readable,
    texts,
    whole,
    word,
)
from pumice.webhook.policies.form import Form

__all__ = ["forms", "variables"]

_LISTS = ("containers", "initContainers")
_SHARED = "(!k.contains('/') || k.contains('kubernetes.io/')) && !k.startsWith('hugepages-')"
_PLACES = (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"))


def variables(path: str) -> dict[str, str]:
    """Pod specs, and their containers with what is looked at.

    Args:
        path: Of the Job's spec.
    """
    volumes = listed("s.?volumes.orValue([])")

    def of(field: str) -> str:
        entry = ", ".join(
            f"'{name}': dyn({value})"
            for name, value in {
                "i": "i",
                "at": f"$places[i] + '.{field}[' + string(j) + ']'",
                "c": "c",
                "init": str(field == "initContainers").lower(),
                "limits": _amounts("c", "limits"),
                "requests": _amounts("c", "requests"),
            }.items()
        )
        return f"s.?{field}.orValue([]).transformList(j, c, {{{entry}}})"

    return {
        "pods": "$tasks.map(t, t.?template.?spec.orValue({}))",
        "places": f"$tasks.transformList(i, t, '{path}.tasks[' + string(i) + '].template.spec')",
        "containers": (f"$pods.transformList(i, s, {' + '.join(map(of, _LISTS))}).flatten()"),
        "asked": (
            "$containers + $pods.transformList(i, s, {"
            + ", ".join(
                f"'{name}': dyn({value})"
                for name, value in {
                    "at": "$places[i]",
                    "limits": _amounts("s", "limits"),
                    "requests": _amounts("s", "requests"),
                }.items()
            )
            + "})"
        ),
        "volumeNames": (
            f"$pods.map(s, {volumes}.filter(v, type(v) == map).map(v, v.?name.orValue('')))"
        ),
        "mounts": (
            "$containers.map(c, "
            + " + ".join(
                f"{listed(f'c.c.?{field}.orValue([])')}.transformList(j, m, type(m) == map, "
                f"{{'i': dyn(c.i), 'at': dyn(c.at + '.{field}[' + string(j) + ']'), "
                f"'name': m.?name.orValue(''), 'path': m.?{member}.orValue(''), 'member': dyn('{member}')}})"
                for field, member in _PLACES
            )
            + ").flatten()"
        ),
    }


def _amounts(owner: str, field: str) -> str:
    resources = mapped(f"{owner}.?resources.orValue({{}})")
    return mapped(f"{resources}.?{field}.orValue({{}})")


def forms() -> tuple[Form, ...]:
    """The forms, for the templates of a Job."""
    return (*_lists(), *_containers(), *_pods(), *_mounts(), *_resources(), _numa())


def _lists() -> tuple[Form, ...]:
    first = "s.?containers.orValue([]).exists(d, d.name == c.name)"
    return (
        Form(
            "TPL-CONTAINERS",
            each(
                "$pods",
                "i, s",
                "s.?containers.orValue([]).size() == 0",
                "$places[i] + '.containers'",
                "'must have at least one container, found none'",
            ),
        ),
        Form(
            "TPL-CONTAINER-NAME",
            _container(
                f"!{is_label('c.c.name')}",
                "name",
                joined("'must be a DNS label, found '", word("c.c.name")),
            ),
        ),
        Form(
            "TPL-CONTAINER-DUP",
            "$pods.transformList(i, s, "
            + each(
                "s.?initContainers.orValue([])",
                "j, c",
                f"c.name != '' && {first}",
                "$places[i] + '.initContainers[' + string(j) + '].name'",
                joined(word("c.name"), "' is already the name of a container'"),
            )
            + ").flatten()",
        ),
        Form(
            "TPL-EPHEMERAL",
            each(
                "$pods",
                "i, s",
                f"{listed('s.?ephemeralContainers.orValue([])')}.size() > 0",
                "$places[i] + '.ephemeralContainers'",
                "'must not be set: ephemeral containers are for pods that run'",
            ),
        ),
    )


def _container(condition: str, field: str, message: str) -> str:
    return each("$containers", "i, c", condition, f"c.at + '.{field}'", message)


def _unknown(owner: str, field: str, known: tuple[str, ...]) -> tuple[str, str]:
    """That a field is a text and not one of those known, and what to say of it."""
    value = f"{owner}.?{field}.orValue('')"
    condition = f"type({value}) == string && !({value} in {texts(('', *known))})"
    return condition, joined(f"'must be one of {', '.join(known)}, found '", word(value))


def _containers() -> tuple[Form, ...]:
    image = "c.c.?image.orValue(null)"
    name = "e.?name.orValue('')"
    pull = _unknown("c.c", "imagePullPolicy", ("Always", "IfNotPresent", "Never"))
    end = _unknown("c.c", "terminationMessagePolicy", ("File", "FallbackToLogsOnError"))
    named = each(
        listed("c.c.?env.orValue([])"),
        "j, e",
        f"type(e) == map && ({name} == null || type({name}) == string && !{name}.matches('^[ -<>-~]+$'))",
        "c.at + '.env[' + string(j) + '].name'",
        joined("'must consist of printable ASCII characters other than =, found '", word(name)),
    )
    return (
        Form(
            "TPL-IMAGE",
            _container(
                f"{image} == null || {image} == ''", "image", "'must name an image, found none'"
            ),
        ),
        Form(
            "TPL-IMAGE-SPACE",
            _container(
                f"type({image}) == string && {image} != {image}.trim()",
                "image",
                joined("'must not start or end with white space, found '", word(image)),
            ),
        ),
        Form("TPL-PULL-POLICY", _container(pull[0], "imagePullPolicy", pull[1])),
        Form("TPL-TERMINATION", _container(end[0], "terminationMessagePolicy", end[1])),
        Form("TPL-ENV", f"$containers.map(c, {named}).flatten()"),
    )


def _pods() -> tuple[Form, ...]:
    restart = _unknown("s", "restartPolicy", ("Always", "OnFailure", "Never"))
    preempt = _unknown("s", "preemptionPolicy", ("PreemptLowerPriority", "Never"))
    seconds = "s.?activeDeadlineSeconds.orValue(null)"

    def pod(condition: str, field: str, message: str) -> str:
        return each("$pods", "i, s", condition, f"$places[i] + '.{field}'", message)

    return (
        Form("TPL-RESTART-POLICY", pod(restart[0], "restartPolicy", restart[1])),
        Form(
            "TPL-DEADLINE",
            pod(
                f"type({seconds}) == int && ({seconds} < 1 || {seconds} > 2147483647)",
                "activeDeadlineSeconds",
                f"'must be from 1 to 2147483647, found ' + string({seconds})",
            ),
        ),
        Form("TPL-PREEMPTION", pod(preempt[0], "preemptionPolicy", preempt[1])),
        Form(
            "TPL-VOLUME-DUP",
            "$volumeNames.transformList(i, v, "
            + each(
                "v",
                "j, n",
                "v.indexOf(n) != j",
                "$places[i] + '.volumes[' + string(j) + '].name'",
                joined(word("n"), "' is already the name of a volume'"),
            )
            + ").flatten()",
        ),
    )


def _mounts() -> tuple[Form, ...]:
    return (
        Form(
            "TPL-MOUNT-VOLUME",
            each(
                "$mounts",
                "i, m",
                "type(m.name) == string && m.name != '' && !(m.name in $volumeNames[m.i])",
                "m.at + '.name'",
                joined("'the pod has no volume '", word("m.name")),
            ),
        ),
    )


def _resources() -> tuple[Form, ...]:
    def list_(field: str, condition: str, message: str) -> str:
        found = each(f"c.{field}", "k, v", condition, f"c.at + '.resources.{field}.' + k", message)
        return f"$asked.map(c, {found}).flatten()"

    comparable = f"k in c.limits && {readable('v')} && {readable('c.limits[k]')}"
    asked, limit = amount("v"), amount("c.limits[k]")
    known = is_simple("v")
    wrong = (
        f"{known} && (!isQuantity(string(v)) || sign({asked}) < 0 || "
        f"(!{whole('v')} && {integral('k')}))"
    )
    bad = joined(
        "'must be a quantity of 0 or more, whole where things are counted, found '", word("v")
    )
    most = joined("'must be at most the limit of '", word("c.limits[k]"), "', found '", word("v"))
    same = joined("'must be the same as the limit, found '", word("v"))
    return (
        Form("TPL-QUANTITY", joined(list_("limits", wrong, bad), list_("requests", wrong, bad))),
        Form(
            "TPL-LIMIT",
            list_(
                "requests",
                f"{_SHARED} && {comparable} && {asked}.isGreaterThan({limit})",
                most,
            ),
        ),
        Form(
            "TPL-LIMIT-EQUAL",
            list_(
                "requests",
                f"!({_SHARED}) && {readable('v')} && "
                f"(!(k in c.limits) || ({comparable} && {asked}.compareTo({limit}) != 0))",
                same,
            ),
        ),
    )


def _numa() -> Form:
    which = "(c.requests == {} ? c.limits : c.requests)"
    cpu = f"{which}.?cpu.orValue(null)"
    right = f"{whole(cpu)} && sign({amount(cpu)}) > 0"
    wrong = f"({cpu} == null || ({readable(cpu)} && !({right})))"  # of others TPL-QUANTITY tells
    pinned = "!($tasks[c.i].?topologyPolicy.orValue('') in ['', 'none'])"
    message = (
        f"'topologyPolicy needs a whole number of CPUs, 1 or more, found ' + "
        f"({cpu} == null ? 'none' : string({cpu}))"
    )
    return Form(
        "JOB-NUMA-CPU",
        _container(f"{pinned} && {wrong}", "resources", message),
    )

"""Checks of names with the messages of kube-apiserver.

The rules are those of `pumice.api.names`; only the messages differ: they are the API server's own.
"""

from collections.abc import Callable

from pumice.api import names

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    f"validation is '{_LABEL}(\\.{_LABEL})*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for "
    f"validation is '{_LABEL}')"
)
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '({_QUALIFIED})?')"
)


def _worded(
    check: Callable[[str], str | None], text: str, limit: int, unit: str = "bytes"
) -> Callable[[str], str | None]:
    def problem(value: str) -> str | None:
        if len(value) > limit:
            return f"must be no more than {limit} {unit}"
        return text if check(value) else None

    return problem


object_name_problem = _worded(
    names.dns_subdomain_problem, _SUBDOMAIN_TEXT, names.SUBDOMAIN_LENGTH, "characters"
)
"""What is wrong with the name of most objects, or None."""
plain_label_problem = _worded(names.dns_label_problem, _LABEL_TEXT, names.LABEL_LENGTH)
"""What is wrong with the name of a namespace, a Service or a container, or None."""
label_value_problem = _worded(names.label_value_problem, _VALUE_TEXT, names.LABEL_LENGTH)
"""What is wrong with the value of a label, or None."""
_name_part_problem = _worded(names.qualified_name_problem, _KEY_TEXT, names.LABEL_LENGTH)


def label_key_problem(key: str) -> str | None:
    """What is wrong with the key of a label or an annotation, or None."""
    prefix, slash, base = key.rpartition("/")
    if slash and (not prefix or object_name_problem(prefix)):
        return f"prefix part {object_name_problem(prefix) if prefix else 'must be non-empty'}"
    problem = _name_part_problem(base)
    if problem and len(base) > names.LABEL_LENGTH:
        return f"name part {problem}"
    return problem


def path_segment_problem(name: str) -> str | None:
    """What is wrong with the name of a role, which may be any path segment (`system:node`)."""
    if name in {".", ".."}:
        return f"may not be '{name}'"
    for character in "/%":
        if character in name:
            return f"may not contain '{character}'"
    return None

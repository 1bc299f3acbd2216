"""Labels, annotations and label selectors: reports early what the API server would refuse later.

Also the numbers of labels and annotations, which Kubernetes does not limit: each component keeps those of all pods.
"""

from collections.abc import Iterator, Mapping, Sized

from pumice.api.fields import Suggestions
from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.names import label_value_problem, qualified_name_problem

Problem = tuple[str, str]
"""Path below the labels or the selector, and the problem."""

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


MOST_LABELS = 256
"""Maximum number of labels of a template or a Job; they seldom have more than twenty."""

MOST_ANNOTATIONS = 1024
"""Maximum number of annotations of a template or a Job."""

ADDED = 64
"""Further labels and annotations that a pod and a PodGroup may have: Pumice adds about a dozen, others may do so, too."""


def too_many(
    labels: Sized | None, annotations: Sized | None, *, added: int = 0
) -> Iterator[tuple[str, str, int]]:
    """Find labels and annotations that are too many.

    Args:
        labels: The labels.
        annotations: The annotations.
        added: How many more there may be than in a template.

    Yields:
        Name of the field, the problem, and the number found.
    """
    for field, found, most in (
        ("labels", labels, MOST_LABELS + added),
        ("annotations", annotations, MOST_ANNOTATIONS + added),
    ):
        if found is not None and len(found) > most:
            yield field, f"must have at most {most} entries, found {len(found)}", len(found)


def label_problems(labels: Mapping[str, str] | None) -> Iterator[Problem]:
    """Find invalid labels."""
    for key, value in sorted((labels or {}).items()):
        if problem := qualified_name_problem(key):
            yield f".{key}", f"invalid key: {problem}"
        elif problem := label_value_problem(value):
            yield f".{key}", problem


def annotation_problems(annotations: Mapping[str, str] | None) -> Iterator[Problem]:
    """Find invalid annotations."""
    for key in sorted(annotations or ()):
        # The API server compares the keys of annotations in lower case.
        if problem := qualified_name_problem(key.lower()):
            yield f".{key}", f"invalid key: {problem}"


def selector_problems(selector: LabelSelector, suggestions: Suggestions) -> Iterator[Problem]:
    """Find what is invalid in a label selector."""
    for where, problem in label_problems(selector.match_labels):
        yield f".matchLabels{where}", problem
    for index, requirement in enumerate(selector.match_expressions or ()):
        for where, problem in _requirement_problems(requirement, suggestions):
            yield f".matchExpressions[{index}]{where}", problem


def _requirement_problems(
    requirement: LabelSelectorRequirement, suggestions: Suggestions
) -> Iterator[Problem]:
    operator, values = requirement.operator, requirement.values or []
    if problem := qualified_name_problem(requirement.key):
        yield ".key", problem
    if operator in _WITH_VALUES:
        if not values:
            yield ".values", f"must have a value for operator {operator}"
        for index, value in enumerate(values):
            if problem := label_value_problem(value):
                yield f".values[{index}]", problem
    elif operator in _WITHOUT_VALUES:
        if values:
            yield ".values", f"must be empty for operator {operator}, found {len(values)}"
    else:
        known = (*_WITH_VALUES, *_WITHOUT_VALUES)
        hint = suggestions.did_you_mean(operator, known)
        yield ".operator", f'must be one of {", ".join(known)}, found "{operator}"{hint}'

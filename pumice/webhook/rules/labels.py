"""Labels and annotations: reports early what the API server would refuse later.

Also the numbers of labels and annotations, which Kubernetes does not limit: each component keeps those of all pods.
"""

from collections.abc import Callable, Iterator, Mapping, Sized

from pumice.api.names import label_value_problem, qualified_name_problem
from pumice.api.podgroups import PodGroup
from pumice.api.pods import Pod
from pumice.webhook.rules.case import Case
from pumice.webhook.rules.rule import Rule

Problem = tuple[str, str]
"""Path below the labels, and the problem."""

MOST_LABELS = 256
"""Maximum number of labels of a template or a Job; they seldom have more than twenty."""

MOST_ANNOTATIONS = 1024
"""Maximum number of annotations of a template or a Job."""

ADDED = 64
"""Further labels and annotations that a pod and a PodGroup may have: Pumice adds about a dozen, others may do so, too."""


def not_many(
    case: Case,
    rule: Rule,
    path: str,
    labels: Sized | None,
    annotations: Sized | None,
    *,
    added: int = 0,
) -> None:
    """Check the numbers of labels and annotations of the metadata at a path; `added` more than in a template may be there."""
    for field, found, most in (
        ("labels", labels, MOST_LABELS + added),
        ("annotations", annotations, MOST_ANNOTATIONS + added),
    ):
        if found is not None and len(found) > most:
            message = f"must have at most {most} entries, found {len(found)}"
            case.report(rule, f"{path}.{field}", message, excess=len(found))


def not_many_on(rule: Rule) -> Callable[[Case, Pod | PodGroup], None]:
    """A check of the numbers of labels and annotations of an object to which others add some."""

    def check(case: Case, found: Pod | PodGroup) -> None:
        meta = found.metadata
        not_many(case, rule, "metadata", meta.labels, meta.annotations, added=ADDED)

    return check


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

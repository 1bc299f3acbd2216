"""The Command: an action that a user requests for a Job or a Queue, as `vcctl job suspend` creates it.

Group `bus.volcano.sh/v1alpha1`. Fields stand at the top level, there is no spec.
"""

from typing import Annotated

from pumice.api.markers import Marker
from pumice.api.meta import ApiStruct, ObjectMeta, OwnerReference

__all__ = ["Command"]


class Command(ApiStruct, frozen=True):
    """A requested action on a Job or a Queue. It is deleted before it is carried out, so it is carried out at most once.

    Attributes:
        action: What to do, for example `AbortJob` or `ResumeJob`.
        target: Object that is meant.
        reason: One word why.
        message: One sentence why.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    action: str = ""
    target: Annotated[OwnerReference | None, Marker(nullable=True)] = None
    reason: str = ""
    message: str = ""

"""Images: that there is one, and when it is pulled."""

from pumice.webhook.rules.rule import Rule
from pumice.webhook.rules.templates.site import Raw, Site
from pumice.webhook.rules.templates.surroundings import Surroundings
from pumice.webhook.rules.templates.values import one_of, quoted

__all__ = ["RULES", "image", "pull_policy"]

TPL_IMAGE = Rule(
    "TPL-IMAGE",
    "containers have an image",
    "Kubernetes refuses the pod otherwise.",
    "containers: [{name: main}]",
    reason="FieldValueRequired",
)
TPL_IMAGE_SPACE = Rule(
    "TPL-IMAGE-SPACE",
    "images have no white space around them",
    "Kubernetes takes the template, and then refuses each of its pods.",
    'containers: [{name: main, image: "busybox "}]',
    stricter=True,
)
TPL_PULL_POLICY = Rule(
    "TPL-PULL-POLICY",
    "imagePullPolicy is Always, IfNotPresent or Never",
    "Kubernetes knows no other.",
    "containers: [{name: main, image: busybox, imagePullPolicy: Sometimes}]",
    reason="FieldValueNotSupported",
)

RULES = (TPL_IMAGE, TPL_IMAGE_SPACE, TPL_PULL_POLICY)

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def image(site: Site, container: Raw) -> None:
    """Check that a container has an image."""
    found = container.get("image")
    if found is None or found == "":
        site.report(TPL_IMAGE, "must name an image, found none", "image")
    elif isinstance(found, str) and found != found.strip():
        message = f"must not start or end with white space, found {quoted(found)}"
        site.report(TPL_IMAGE_SPACE, message, "image")


def pull_policy(site: Site, container: Raw, _pod: Surroundings) -> None:
    """Check `imagePullPolicy`; an empty one is left out."""
    one_of(
        site,
        TPL_PULL_POLICY,
        container["imagePullPolicy"] or None,
        _PULL_POLICIES,
        "imagePullPolicy",
    )

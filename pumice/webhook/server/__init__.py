"""Admission over HTTP: the only part of it that knows sockets, TLS, clocks and the API server.

replies       answers that are no reviews: HTTP errors as Kubernetes words them
reviews       POST of a review: read, judge, look up what is missing, count, log
deadline      how long the API server waits, and what it is told when that is not enough
app           which path answers what
connection    what is no HTTP, breaks off or does not arrive is answered too
listener      ports, TLS, draining
cached_view   the cluster as admission sees it, from watch caches
groups        the file of resource groups, read again whenever it changes
lookup        the one live question: does that queue exist by now?
sight         all of that, or objects from files, as what a webhook sees
certificates  where the serving certificate comes from
worker        all of it as the tasks of a process
"""

from pumice.webhook.server.certificates import Certificates, FileCertificates, KeptCertificates
from pumice.webhook.server.listener import Listener
from pumice.webhook.server.settings import InsecureAddressError, ServerSettings
from pumice.webhook.server.sight import Sight
from pumice.webhook.server.worker import WebhookWorker

__all__ = [
    "Certificates",
    "FileCertificates",
    "InsecureAddressError",
    "KeptCertificates",
    "Listener",
    "ServerSettings",
    "Sight",
    "WebhookWorker",
]

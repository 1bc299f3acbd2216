"""Admission over HTTP: the only part of admission that uses sockets, TLS, clocks and the API server.

listener          the ports of the webhook, which path calls what, and draining
reviews           POST of a review: read, judge, look up what is missing, count, log
lookup            the cluster, from watch caches; reads of queues and owners that these lack, and the answer if time is too short
certificates      where the serving certificate comes from
metrics           what is counted of all this
settings          addresses, limits and how to shut down
worker            all of it as the tasks of a process, and the file of resource groups, read again whenever it changes
"""

from pumice.webhook.server.certificates import Certificates, FileCertificates, KeptCertificates
from pumice.webhook.server.listener import Listener
from pumice.webhook.server.settings import InsecureAddressError, ServerSettings
from pumice.webhook.server.worker import StateSource, WebhookWorker

__all__ = [
    "Certificates",
    "FileCertificates",
    "InsecureAddressError",
    "KeptCertificates",
    "Listener",
    "ServerSettings",
    "StateSource",
    "WebhookWorker",
]

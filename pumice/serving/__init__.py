"""HTTP servers of Pumice's processes: reviews, health and metrics, with the same limits.

http_server   calls a handler, answers its errors, drains
connections   one connection: how long it may wait, and how it closes without losing an answer
limits        how many connections may be open, and how long they may wait
errors        HTTP errors as Kubernetes words them
probes        `/healthz`, `/readyz` and `/metrics`
"""

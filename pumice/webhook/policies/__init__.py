"""Admission without webhook calls: what of the rules CEL can say, as policies of the API server.

Each kind has a room with the CEL forms of its rules, keyed by their codes; `coverage` tells of every rule whether
the policies have it, `manifests` and `mutations` make the objects that are installed, and `chart` the file from
which Helm makes the same. All of it is pure.

A policy sees one object, the one that it replaces and the namespace, and nothing else of the cluster. So rules about
other objects stay with the webhook, as do those that take more than an expression may cost.
"""

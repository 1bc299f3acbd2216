"""Pumice: a Volcano-compatible batch stack for Kubernetes."""

__version__ = "0.1.0"

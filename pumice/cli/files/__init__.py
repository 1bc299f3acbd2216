"""Manifests that verbs read: files, folders, positions of fields, admission of what was read."""

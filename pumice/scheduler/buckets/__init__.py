"""Task topology: which pods of a job belong together, and on which nodes they fit together."""

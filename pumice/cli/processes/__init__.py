"""What the long-running components share: start, logs, health, certificates, flags of their own."""

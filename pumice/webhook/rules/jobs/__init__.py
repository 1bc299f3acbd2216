"""Rules on Jobs (batch.volcano.sh)."""

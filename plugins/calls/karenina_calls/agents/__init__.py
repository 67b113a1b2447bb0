"""Programs that are agents: run as processes, read within bounds, their work kept as messages."""

"""The final stage and the sinks that keep results."""

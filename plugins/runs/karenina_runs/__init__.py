"""Running many items: what to run, with which models, where the results go."""

"""Templates that a model drafts and code puts to the proof: see `drafting`."""

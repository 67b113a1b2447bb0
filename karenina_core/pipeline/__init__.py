"""The pipeline of one item: stages, what they share, their order, and the engine that runs them."""

"""The embedding check: a second opinion on texts that were judged wrong, and the embedders that it asks."""

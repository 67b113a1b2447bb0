"""Whether a template does its work, found out without a model: see `prove`."""

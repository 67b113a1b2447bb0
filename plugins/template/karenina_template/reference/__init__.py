"""Judging questions without a template by their reference answer: see `judgment`."""

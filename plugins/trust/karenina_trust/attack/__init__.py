"""Texts in wrong answers that are to make a judge accept them, and how many judges do."""

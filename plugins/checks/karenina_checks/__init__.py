"""Stages that look at an answer before it is parsed."""

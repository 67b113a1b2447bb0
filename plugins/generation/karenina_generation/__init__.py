"""Stages that obtain an answer and guard it."""

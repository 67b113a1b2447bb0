"""Rubric evaluation: the stage and the evaluators of the published trait types."""

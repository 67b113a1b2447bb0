"""Verification primitives: how one extracted value is compared with the expected one.

`check` decides; `score` gives partial credit between 0 and 1 and follows `check` unless a primitive says otherwise.
A value that cannot be compared at all raises TypeError or ValueError: that is an error in the template, never a
wrong answer. Parameters are checked when a primitive is made, the ground truth when a field is declared.

Primitives that read the trace (`TracePrimitive`) have `check_trace` instead of `check`.
"""

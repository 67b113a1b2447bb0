"""Numbers that people have checked: labels, corrected rates and certificates."""

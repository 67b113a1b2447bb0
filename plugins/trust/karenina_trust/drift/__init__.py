"""Whether a judge has become worse, looked at as often as one likes."""

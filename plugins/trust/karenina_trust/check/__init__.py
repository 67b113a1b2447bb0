"""Whether a judge reads answers rightly whose contents are known."""

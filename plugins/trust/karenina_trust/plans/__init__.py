"""How many labels a run needs, as a command."""

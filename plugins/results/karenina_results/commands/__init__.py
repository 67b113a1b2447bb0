"""Commands of karenina-results. Each module is light: what it does is imported when it is run."""

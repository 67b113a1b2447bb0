"""What several judges of the same answers say together."""

"""Regular languages over bytes: construction, derivatives, decisions, characters."""

"""What `guided.generate` is made of: its arguments resolved once, and the few runners that decode."""

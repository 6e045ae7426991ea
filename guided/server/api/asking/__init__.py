"""From a request to what is generated: its language, its prompt, its jobs."""

"""The endpoints, each a router of FastAPI."""

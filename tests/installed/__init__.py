"""What is tried of an installed package, outside the repository: `make test-wheel` runs it."""

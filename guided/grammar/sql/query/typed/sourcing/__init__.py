"""What stands in FROM: tables, functions whose result is rows, queries, and how they are joined."""

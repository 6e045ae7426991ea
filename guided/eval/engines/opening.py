"""An engine's adapter by its name, imported only then."""

from __future__ import annotations

import importlib

from guided.errors import GuidedError
from guided.eval.engines.names import PACKAGES, EngineName
from guided.eval.engines.protocol import Engine, TokenSpace

__all__ = ["open_engine"]


def open_engine(name: EngineName, tokens: TokenSpace) -> Engine:
    """The adapter of an engine over a tokenizer; raises `GuidedError` when its package is missing."""
    package = PACKAGES.get(name)
    if package is not None:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise GuidedError(
                f"the engine {name.value} needs the package {package}, which cannot be imported: {error}",
                remedy="Install it: pip install 'guided-decoding[bench]'.",
            ) from error
    module = importlib.import_module(f"guided.eval.engines.{name.value}")
    engine: Engine = module.open_engine(tokens)
    return engine

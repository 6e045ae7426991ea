"""The tokenizer of `guided check --tokenizer`: a file or folder without transformers, a name on the hub with it.

The peers that ``--compare`` runs read their vocabularies from a tokenizer of transformers, and from nothing else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError
from guided.eval.requests import PACKAGED

if TYPE_CHECKING:
    from guided.vocab import Vocabulary

__all__ = ["load_tokenizer", "load_vocabulary"]


def load_vocabulary(name: str) -> Vocabulary:
    """The vocabulary of a ``tokenizer.json``, of a folder with one, of the packaged model, or of a model's name."""
    from guided.vocab import Vocabulary

    file = _file_of(name)
    if file is not None:
        return Vocabulary.from_tokenizer(_read(file), eos_ids=_declared_end(file))
    return Vocabulary.from_tokenizer(_from_hub(name))


def load_tokenizer(name: str) -> Any:
    """The same as a fast tokenizer of transformers, with its end-of-text token set where one is declared."""
    from guided.cli.models import silence

    file = _file_of(name)
    if file is None:
        return _from_hub(name)
    silence()
    from transformers import PreTrainedTokenizerFast

    read = _read(file)
    ends = _declared_end(file)
    end = None if ends is None else read.id_to_token(ends[0])
    return PreTrainedTokenizerFast(tokenizer_object=read, eos_token=end)  # type: ignore[no-untyped-call]


def _file_of(name: str) -> Path | None:
    """The ``tokenizer.json`` that a name means; None where it is a name on the hub."""
    if name == PACKAGED:
        from guided.nano import MODEL_PATH

        path = MODEL_PATH
    else:
        path = Path(name).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file():
        return file
    if path.is_dir() or name.startswith((".", "/", "~")) or name.count("/") > 1 or path.suffix == ".json":
        raise GuidedError(
            f"there is no tokenizer at {str(path)!r}", remedy="Name a tokenizer.json, or a folder that holds one."
        )
    return None


def _read(file: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises Exception itself
        raise GuidedError(
            f"{str(file)!r} is not a tokenizer: {str(error).splitlines()[0]}", remedy="Name a tokenizer.json."
        ) from error


def _declared_end(file: Path) -> list[int] | None:
    """The end-of-text token that the ``tokenizer_config.json`` beside the file names, as an id; None without one."""
    try:
        declared = json.loads((file.parent / "tokenizer_config.json").read_text("utf-8")).get("eos_token")
    except (OSError, ValueError, AttributeError):
        return None
    content = declared.get("content") if isinstance(declared, dict) else declared
    token = _read(file).token_to_id(content) if isinstance(content, str) else None
    return None if token is None else [token]


def _from_hub(name: str) -> Any:
    from guided.cli.models import silence

    silence()
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name)
    except Exception as error:  # the hub, its transport and transformers each raise their own kind
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise GuidedError(
            f"cannot load the tokenizer of {name!r}: {reason}", remedy="Check the name, or name a tokenizer.json."
        ) from error

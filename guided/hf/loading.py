"""A language model and its tokenizer by name or folder, with errors that say what is missing and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultimodalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
)

from guided.errors import GuidedError
from guided.nano.experts import Expert
from guided.vocab import Vocabulary, vocabulary_of

__all__ = ["PACKAGED", "PACKAGED_DENOISER", "LoadedModel", "Stage", "decoder_start_ids", "end_ids", "load"]

PACKAGED = "nano"
"""The name of the model inside this package; a folder of that name is ``./nano``, as with names of experts."""

PACKAGED_DENOISER = "nano-diffusion"
"""The name of the denoiser inside this package."""

DENOISERS_OF_REMOTE_CODE = ("llada", "Dream", "dream")
"""Types of masked denoisers whose code comes with them, under transformers' ``AutoModel``."""

HUB_SECONDS = 10.0
"""How long to wait for the hub's answer before only the local cache is tried.  Without asking first, transformers
repeats each of its requests for 23 s when there is no network."""


class Stage(Enum):
    """What `load` is about to do, in this order; the values are for people.

    >>> import guided.hf
    >>> _ = guided.hf.load(on_stage=lambda stage: print(stage.value))
    reading the configuration
    reading the tokenizer
    loading the weights
    reading the vocabulary
    """

    CONFIGURATION = "reading the configuration"
    TOKENIZER = "reading the tokenizer"
    WEIGHTS = "loading the weights"
    VOCABULARY = "reading the vocabulary"


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model that is ready to generate, with its tokenizer.

    >>> import guided.hf
    >>> loaded = guided.hf.load()
    >>> loaded.name, loaded.vocabulary.size
    ('nano', 2048)
    """

    name: str
    model: Any
    tokenizer: Any

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary with every end-of-text id that the model may emit."""
        return vocabulary_of(self.tokenizer, end_ids(self.model, self.tokenizer))


def end_ids(model: Any, tokenizer: Any) -> list[int] | None:
    """The tokenizer's end-of-text id and those special ids that the model's generation configuration adds.

    None when neither knows one.  Ids of the configuration that are text to this tokenizer are not ends: a
    configuration's default (2) is often not its tokenizer's.
    """
    own = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    declared = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    declared = [] if declared is None else [declared] if isinstance(declared, int) else list(declared)
    special = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", {})}
    ends = sorted({*own, *(int(token) for token in declared if token in special)})
    return ends or None


def decoder_start_ids(model: Any, given: Sequence[int] | None = None) -> tuple[int, ...]:
    """The ids that an encoder-decoder model's decoder begins with, ``given`` or configured; of others none.

    Raises `GuidedError` where none are configured.
    """
    if not model.config.is_encoder_decoder:
        return ()
    if given is not None:
        return tuple(int(token) for token in given)
    for config in (model.generation_config, model.config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            token = getattr(config, name, None)
            if isinstance(token, int):
                return (token,)
    raise GuidedError(
        f"{type(model).__name__} has no decoder_start_token_id",
        remedy="Pass decoder_start=, the ids that its decoder begins with.",
    )


def load(
    name_or_path: str | Path = PACKAGED,
    *,
    device: str | None = None,
    dtype: torch.dtype | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    local_files_only: bool = False,
    on_stage: Callable[[Stage], None] | None = None,
) -> LoadedModel:
    """Load a language model: a packaged one, a folder, or a name on the hub.

    It is causal, has an encoder and a decoder, or is a denoiser: a ``*ForMaskedLM``, DiffusionGemma, LLaDA, Dream.
    Packaged are ``"nano"``, the denoiser ``"nano-diffusion"``, and the experts beside it, ``"nano-amateur"``,
    ``"reviews"``, ``"reviews-amateur"``, ``"reviews-positive"``, ...: see `guided.nano.experts`.
    ``device`` is the first accelerator, else the CPU, unless given; ``dtype`` is the checkpoint's own, on the CPU
    float32.  ``on_stage`` is called before each stage; while it is set, and for packaged models, what transformers
    prints is off.  Raises `GuidedError` where there is no such model, no tokenizer, or no language model behind the
    name.

    >>> import guided.hf
    >>> loaded = guided.hf.load()  # the packaged model: no hub, no download
    >>> loaded.name, type(loaded.model).__name__
    ('nano', 'LlamaForCausalLM')
    """
    report = on_stage or (lambda stage: None)
    place = device or _best_device()
    source, local = _source(name_or_path)
    common = {
        "revision": revision or "main",
        "trust_remote_code": trust_remote_code,
        "local_files_only": local or local_files_only,
    }
    # A packaged model is there in a tenth of a second: a bar of that would be noise before the user's first answer.
    with _quiet() if on_stage or _is_packaged(name_or_path) else nullcontext():
        report(Stage.CONFIGURATION)
        if not common["local_files_only"]:
            common["local_files_only"] = not _hub_answers(source, revision)
        with _explained(name_or_path, local, "the configuration"):
            config = AutoConfig.from_pretrained(source, **common)
        auto = _auto_class(config, name_or_path)
        report(Stage.TOKENIZER)
        with _explained(name_or_path, local, "the tokenizer"):
            tokenizer = AutoTokenizer.from_pretrained(source, **common)
        if len(tokenizer) <= len(tokenizer.all_special_ids):
            raise _no_tokenizer(name_or_path)
        report(Stage.WEIGHTS)
        with _explained(name_or_path, local, "the weights"):
            kind = dtype or (torch.float32 if place == "cpu" else "auto")
            model, info = auto.from_pretrained(source, config=config, dtype=kind, output_loading_info=True, **common)
        if info["missing_keys"]:
            raise GuidedError(
                f"the checkpoint of {str(name_or_path)!r} has no weights for {sorted(info['missing_keys'])[0]}",
                remedy="Pass a model that was trained to generate text.",
            )
        try:
            model = model.to(place).eval()
        except (RuntimeError, AssertionError) as error:
            raise GuidedError(
                f"cannot use the device {place!r}: {_first_line(error)}", remedy="Pass device='cpu'."
            ) from error
    loaded = LoadedModel(str(name_or_path), model, tokenizer)
    report(Stage.VOCABULARY)
    _ = loaded.vocabulary
    return loaded


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _is_packaged(name_or_path: str | Path) -> bool:
    return name_or_path in (PACKAGED, PACKAGED_DENOISER, *(one.name_to_load for one in Expert))


def _source(name_or_path: str | Path) -> tuple[str, bool]:
    """What `from_pretrained` takes, and whether it is a folder."""
    if name_or_path in (PACKAGED, PACKAGED_DENOISER):
        from guided.nano import DIFFUSION_PATH, MODEL_PATH

        path = MODEL_PATH if name_or_path == PACKAGED else DIFFUSION_PATH
        if not (path / "config.json").is_file():
            raise GuidedError("the packaged model is missing from this installation", remedy="Install guided again.")
        return str(path), True
    expert = next((one for one in Expert if one.name_to_load == name_or_path), None)
    if expert is not None:
        return str(expert.path), True
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise GuidedError(
                f"the folder {str(path)!r} holds no model: it has no config.json",
                remedy="Pass a folder that save_pretrained wrote.",
            )
        return str(path), True
    text = str(name_or_path)
    if path.exists():
        raise GuidedError(f"{text!r} is a file, not a model's folder", remedy="Pass the folder that holds config.json.")
    # Names on the hub are "name" or "owner/name"; everything else can only have been meant as a path.
    if isinstance(name_or_path, Path) or text.startswith((".", "/", "~")) or text.count("/") > 1 or "\\" in text:
        raise GuidedError(f"no such folder: {text!r}", remedy="Pass a folder that holds a model, or a name on the hub.")
    return text, False


def _hub_answers(name: str, revision: str | None) -> bool:
    """Ask the hub: True when the model can be fetched, False without a connection; an error where there is none."""
    try:
        HfApi().model_info(name, revision=revision, timeout=HUB_SECONDS)
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        where = name if revision is None else f"{name}, revision {revision}"
        raise GuidedError(
            f"there is no model {where!r}, neither as a folder nor, for you, on the hub",
            remedy="Check the name; for a private model, log in with `hf auth login`.",
        ) from error
    except HfHubHTTPError:
        return True  # A mirror may serve files without answering questions.
    except Exception:  # No connection: the hub's client, its transport and the system each raise their own kind.
        return False
    return True


def _auto_class(config: Any, name: str | Path) -> Any:
    architectures = config.architectures or []
    masked = bool(architectures) and all(item.endswith("ForMaskedLM") for item in architectures)
    if masked and (type(config) in AutoModelForMaskedLM._model_mapping or _is_remote(config, AutoModelForMaskedLM)):
        return AutoModelForMaskedLM
    if type(config) in AutoModelForMultimodalLM._model_mapping and config.model_type == "diffusion_gemma":
        return AutoModelForMultimodalLM
    if config.model_type in DENOISERS_OF_REMOTE_CODE and _is_remote(config, AutoModel):
        return AutoModel
    for auto in (AutoModelForSeq2SeqLM, AutoModelForCausalLM):
        wanted = config.is_encoder_decoder is (auto is AutoModelForSeq2SeqLM)
        if wanted and not masked and (_is_remote(config, auto) or type(config) in auto._model_mapping):
            return auto
    raise GuidedError(
        f"{str(name)!r} is no causal or encoder-decoder language model (its type is {config.model_type!r})",
        remedy="Pass a model that generates text.",
    )


def _is_remote(config: Any, auto: Any) -> bool:
    """Whether the model's own code has a class for this one of transformers."""
    return auto.__name__ in getattr(config, "auto_map", {})


def _no_tokenizer(name: str | Path) -> GuidedError:
    return GuidedError(
        f"{str(name)!r} has no tokenizer",
        remedy="Save the model's tokenizer beside it: tokenizer.save_pretrained(folder).",
    )


@contextmanager
def _explained(name: str | Path, local: bool, what: str) -> Iterator[None]:
    """Turn what transformers raises about a missing or broken part into one clear error.

    Its exceptions come from the hub, tokenizers, safetensors, sentencepiece and json, and share no base class.
    """
    try:
        yield
    except GuidedError:
        raise
    except Exception as error:
        reason = _first_line(error)
        if "trust_remote_code" in str(error):
            remedy = "Pass trust_remote_code=True if you trust the code that comes with this model."
        elif what == "the tokenizer" and local:
            raise _no_tokenizer(name) from error
        elif local:
            remedy = "Check that the folder is complete: config.json, the weights and the tokenizer's files."
        else:
            remedy = (
                "Check the name, the connection and your access to the model;"
                f" a local folder or the packaged model {PACKAGED!r} need no connection."
            )
        raise GuidedError(f"cannot load {what} of {str(name)!r}: {reason}", remedy=remedy) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    logging = transformers.utils.logging
    was_on, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if was_on:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]

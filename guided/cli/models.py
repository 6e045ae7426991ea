"""Loading a model and generating with it, for the commands that run one.

Nothing here imports torch or transformers at module level, so that ``--help`` does not pay for them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import Decoding
from guided.cli.output import print_note, stderr_console
from guided.cli.progress import kernel_compilation, steps
from guided.errors import LimitError

if TYPE_CHECKING:
    from guided.constraint.constraint import Constraint
    from guided.draft import Drafting
    from guided.grammar.ir import Grammar
    from guided.hf import Generation, LoadedModel
    from guided.steer import Stack

__all__ = ["budget_for", "compile_for", "generate_batch", "load_model", "seed_draws", "silence"]

DEFAULT_NEW_TOKENS = 512
"""Budget without --max-new-tokens, where the model has room: about 2,000 characters of JSON."""

SMALL_MODEL = 20_000_000
"""Parameters up to which one thread serves a model on the CPU.

Its passes take milliseconds, and each of their hundred small products waits for all threads: on a busy machine, with
the packaged model of 4.5 million parameters, two threads spent half as much processor time again as one, and took as
much longer.  The bound itself is an estimate: nothing larger was measured for it.
"""

_ENVIRONMENT = {
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def silence() -> None:
    """Keep the model libraries from writing to standard error; call it before they are first imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def load_model(name: str, *, device: str | None, offline: bool, quiet: bool) -> LoadedModel:
    """Load a model and its tokenizer with a progress bar; raises `GuidedError` as `guided.hf.load` does."""
    silence()
    with steps(5, quiet=quiet) as step:
        step("starting torch and transformers")
        from guided import hf

        loaded = hf.load(
            name, device=device, local_files_only=offline, on_stage=lambda stage: step(f"{name}: {stage.value}")
        )
    _choose_threads(loaded)
    if not quiet:
        _name_toy(name, loaded)
    return loaded


_named: set[str] = set()


def _name_toy(name: str, loaded: LoadedModel) -> None:
    """Say once, to people at a terminal, what the answers of a packaged model are worth."""
    from guided.hf.loading import PACKAGED, PACKAGED_DENOISER
    from guided.nano.experts import Expert

    if _named or not stderr_console().is_terminal:
        return
    if name in (PACKAGED, PACKAGED_DENOISER, *(expert.value for expert in Expert)):
        _named.add(name)
        millions = sum(parameter.numel() for parameter in loaded.model.parameters()) / 1e6
        print_note(
            f"{name} is a toy of {millions:.1f} million parameters: the form of its output is guaranteed, what it says"
            " is often wrong; --model takes a real one"
        )


def _choose_threads(loaded: LoadedModel) -> None:
    """One thread for a small model on the CPU, unless the environment says how many."""
    import torch

    small = sum(parameter.numel() for parameter in loaded.model.parameters()) <= SMALL_MODEL
    if small and loaded.model.device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def compile_for(grammar: Grammar, model: LoadedModel, *, quiet: bool) -> Constraint:
    """Compile for the model's vocabulary and make the first mask, which is when kernels are compiled if ever."""
    import numpy as np

    import guided

    with kernel_compilation(quiet=quiet):
        constraint = guided.compile(grammar, model.vocabulary)
        constraint.fill_mask(constraint.start, np.zeros(model.vocabulary.n_words, np.uint32))
        return constraint


def seed_draws(how: Decoding) -> None:
    """Make the draws that follow a function of the seed."""
    import torch

    torch.manual_seed(how.seed)


def budget_for(model: LoadedModel, constraint: Constraint, n_prompt: int, wanted: int | None) -> int:
    """How many tokens may be written after a prompt of ``n_prompt``, so that a whole text fits and the model has room.

    Raises `LimitError` when the shortest text does not fit, or the budget ``wanted`` leaves no room for the prompt.
    """
    needed = constraint.shortest_completion(constraint.start) + 1
    room = _room(model)
    if room is not None and n_prompt + needed > room:
        raise LimitError(
            f"the prompt takes {n_prompt} tokens and the shortest answer {needed}, but the model has room for {room}",
            remedy="Shorten the input, or use a model with a longer context.",
        )
    if wanted is None:
        most = DEFAULT_NEW_TOKENS if room is None else min(DEFAULT_NEW_TOKENS, room - n_prompt)
        return max(needed, most)
    if wanted < needed:
        raise LimitError(
            f"--max-new-tokens {wanted} is too few: the shortest answer takes {needed} tokens",
            remedy=f"Pass {needed} or more.",
        )
    if room is not None and n_prompt + wanted > room:
        raise LimitError(
            f"the prompt takes {n_prompt} tokens, which leaves no room for --max-new-tokens {wanted} in {room}",
            remedy=f"Pass {room - n_prompt} or fewer, or shorten the input.",
        )
    return wanted


def _room(model: LoadedModel) -> int | None:
    config = model.model.config
    if config.is_encoder_decoder:
        return None
    room = getattr(config.get_text_config(), "max_position_embeddings", None)
    return room if isinstance(room, int) else None


def generate_batch(
    model: LoadedModel,
    prompts: Sequence[Any],
    constraint: Constraint,
    *,
    max_new_tokens: int,
    how: Decoding,
    processors: Sequence[Any] = (),
    draft: Drafting | None = None,
    steer: Stack | None = None,
    quiet: bool = False,
) -> list[Generation]:
    """Generate one whole text for each prompt; ``processors`` see the model's scores before the mask."""
    from guided import hf
    from guided.hf.front.own_loop import ChainsOnly

    chosen: dict[str, Any] = {"do_sample": False, "num_beams": 1}
    if draft is not None or steer is not None:
        chosen |= {"draft": draft, "steer": steer, "seed": how.seed, "same_tokenizer": True}
    if how.temperature is not None:
        # The model's own distribution under the grammar: no cuts that a checkpoint's configuration may ask for.
        chosen |= {"do_sample": True, "temperature": how.temperature, "top_k": 0, "top_p": 1.0}
    with kernel_compilation(quiet=quiet), warnings.catch_warnings():
        # The line about drafts says it.
        warnings.simplefilter("ignore", ChainsOnly)
        made = hf.generate(
            model,
            list(prompts),
            constraint,
            max_new_tokens=max_new_tokens,
            logits_processor=list(processors) or None,
            **chosen,
        )
    return made if isinstance(made, list) else [made]

"""`Generate`: constrained texts as a map of a Ray data set, for pipelines of one's own.

The command line's batches are answered by `guided.serving.ray.mapping` instead: they can be gone on with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError

if TYPE_CHECKING:
    from ray.data import Dataset

    from guided.grammar.ir import Grammar

__all__ = ["Generate", "generate_texts"]


class Generate:
    """Writes a text under a grammar for each prompt of a batch: a class for ``Dataset.map_batches``.

    Column ``prompt`` holds prompts; column ``into`` gets the texts, and ``into + "_error"`` what is wrong with a row,
    of which the text is then empty.  ``options`` are those of `guided.generate`; ``model`` is a name or path that
    `guided.hf.load` takes, on the worker's machine.
    """

    def __init__(
        self,
        grammar: Grammar,
        *,
        model: str = "nano",
        device: str | None = None,
        prompt: str = "prompt",
        into: str = "text",
        **options: Any,
    ) -> None:
        import torch

        from guided import hf

        # Ray gives a worker one CPU.
        torch.set_num_threads(1)
        self.loaded = hf.load(model, device=device)
        self.grammar, self.prompt, self.into = grammar, prompt, into
        self.options = options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with two more columns."""
        if self.prompt not in batch:
            raise GuidedError(
                f"the data set has no column {self.prompt!r}", remedy=f"Name one of {', '.join(map(repr, batch))}."
            )
        prompts = [str(prompt) for prompt in batch[self.prompt]]
        found = self._texts(prompts)
        texts = ["" if isinstance(each, GuidedError) else each for each in found]
        errors = [str(each) if isinstance(each, GuidedError) else "" for each in found]
        return {**batch, self.into: texts, f"{self.into}_error": errors}

    def _texts(self, prompts: list[str]) -> list[str | GuidedError]:
        from guided import hf

        try:
            made = hf.generate(self.loaded, prompts, self.grammar, **self.options)
            return [each.text for each in made]
        except GuidedError as error:
            if len(prompts) == 1:
                return [error]
        # One prompt that is too long fails all of a batch.
        return [found for prompt in prompts for found in self._texts([prompt])]


def generate_texts(
    dataset: Dataset,
    grammar: Grammar,
    *,
    model: str = "nano",
    device: str | None = None,
    workers: int = 2,
    batch_size: int = 8,
    **options: Any,
) -> Dataset:
    """The data set with texts under a grammar, written by ``workers`` actors; see `Generate` for the other options.

    Lazy, as Ray's maps are.  An actor has one CPU, and one GPU where ``device`` is a GPU.
    """
    from ray.data import ActorPoolStrategy

    return dataset.map_batches(
        Generate,
        fn_constructor_args=(grammar,),
        fn_constructor_kwargs={"model": model, "device": device, **options},
        batch_size=batch_size,
        compute=ActorPoolStrategy(size=workers),
        num_cpus=1,
        num_gpus=1 if (device or "").startswith("cuda") else 0,
    )

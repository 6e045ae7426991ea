"""Target passes per token and speed of drafts on guided-nano's JSON and SQL, with transformers in the same run.

    python benchmarks/speculation.py [--texts 40] [--set records|familiar|sql] [--pass-ms 20] [--sample 1.0]
        [--model nano|FOLDER] [--small FOLDER] [--trained] [--only NAME ...]

The texts are held-out examples of `examples/train_nano`, each under its own schema, or for SQL its own tables; greedy.
``--sample`` draws tokens at a temperature instead: what ways to verify drawn drafts are worth, without transformers.
``--pass-ms`` makes every forward pass of the target at least so long whatever its number of positions, by waiting: it
stands for a model whose pass for one token costs as much as for sixteen, while the small model says which drafts are
accepted.  Transformers' passes wait as well.  ``--trained`` adds the drafts that were trained for guided-nano or are
made of its layers; its small draft model is then the assistant of transformers' assisted generation.  The first line of
the output says what was run.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch

import guided
from guided.draft import (
    BestFirst,
    Branching,
    Chain,
    Confidence,
    Context,
    Drafter,
    Drafting,
    Eagle,
    EarlyExit,
    Fixed,
    ForcedBytes,
    Goodput,
    Heads,
    HeadStopped,
    Independent,
    Lookahead,
    MaskCounts,
    Model,
    NGrams,
    Observed,
    OptTree,
    Overlapped,
    Prefixed,
    PromptLookup,
    Proposal,
    Recycling,
    Statistics,
    Suffixes,
    TriGrams,
    Union,
    auto,
    chain,
    early_exits,
    load_heads,
    load_prefixed,
    measure_ranks,
    optimal_tree,
    search_skips,
    speculate,
)
from guided.draft.masks import RowMasks
from guided.hf import load
from guided.hf.adapted_exit import AdaptedExit
from guided.hf.cache.shared_exit import SharedExit
from guided.hf.draft_heads import base_of, nano_eagle, nano_heads, nano_small, nano_stopping_head, published_heads
from guided.hf.draft_measurement import PLAIN, measure_drafts
from guided.hf.language_model import TransformersModel
from guided.hf.prompt_tokens import PromptTokens
from guided.hf.skipped_layers import SkippedLayers
from guided.infer.chance import Chance
from guided.lm import LanguageModel, transformed
from guided.nano import extraction_prompt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "train_nano"))


def cases(name: str, n: int, seed: str = "speculation") -> list[tuple[str, guided.Grammar]]:
    """Prompts that guided-nano was not trained on, each with its grammar."""
    from constrained import grammar_of
    from evaluate import examples
    from familiar_corpus import random_familiar_case
    from record_corpus import random_record_case
    from words import HELD_OUT

    if name == "sql":
        return [(example.prompt, grammar_of(example)) for example in islice(examples("sql"), n)]
    rng = random.Random(f"{seed}/{name}")
    make = random_familiar_case if name == "familiar" else random_record_case
    made = [make(rng, HELD_OUT) for _ in range(n)]
    return [(extraction_prompt(case.schema, case.text), guided.json_schema(case.schema)) for case in made]


class Refused:
    """Drafts what the grammar allows and hardly any model writes: an arbitrary token, where there are many."""

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A chain of one id."""
        return [chain(self._arbitrary(context) * context.budget) for context in contexts]

    def _arbitrary(self, context: Context) -> list[int]:
        assert context.constraint is not None
        masks = RowMasks(context.constraint, end_in_time=False)
        allowed = masks.allowed(context.state, 0, context.constraint.vocabulary.size)
        assert allowed is not None
        ids = allowed.nonzero()[0].tolist()
        return [ids[7919 * len(context.tokens) % len(ids)]] if len(ids) > 50 else []

    def learn(self, observed: Sequence[Observed]) -> None:
        """Nothing."""

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing."""


def drafts(small: TransformersModel | None) -> dict[str, Drafting]:
    """The ways to draft that are measured."""
    found = {
        "prompt lookup": Drafting(PromptLookup(), Fixed(10)),
        "recycling": Drafting(Recycling(), Fixed(80)),
        "tri-grams": Drafting(TriGrams(), Fixed(16)),
        "n-grams": Drafting(BestFirst(NGrams()), Fixed(16)),
        "suffixes": Drafting(Suffixes(), Fixed(16)),
        "suffixes beside all others, 16 nodes": Drafting(
            BestFirst(ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling(), Suffixes()), Fixed(16)
        ),
        "jacobi, 8 places": Drafting(Lookahead.jacobi(8), Fixed(8)),
        "lookahead, 30 nodes": Drafting(Lookahead(5, 4, 5), Fixed(30)),
        "lookup and recycling, 16 nodes": Drafting(BestFirst(ForcedBytes(), PromptLookup(), Recycling()), Fixed(16)),
        "lookup and masks, 16 nodes": Drafting(BestFirst(PromptLookup(), MaskCounts()), Fixed(16)),
        "all without a model, 8 nodes": Drafting(auto().drafter, Fixed(8)),
        "all without a model, 16 nodes": Drafting(auto().drafter, Fixed(16)),
        "all without a model, 32 nodes": Drafting(auto().drafter, Fixed(32)),
        "auto": auto(),
        "all refused, goodput": Drafting(Refused(), Goodput()),
    }
    if small is not None:
        found |= {
            "small model, chain": Drafting(Model(small, Chain(8, Confidence()), by_rule=True), Fixed(8)),
            "small model, tree": Drafting(Model(small, Branching((3, 2, 1, 1)), by_rule=True), Fixed(24)),
            "small model, chain of 8 by rule": Drafting(Model(small, Chain(8), by_rule=True), Fixed(8)),
            "small model, drafted meanwhile": Drafting(Overlapped(Model(small, Chain(8), by_rule=True)), Fixed(8)),
            "small model, drafted meanwhile, pre-verify": Drafting(
                Overlapped(Model(small, Chain(8), by_rule=True), pre_verify=True), Fixed(8)
            ),
            "small model, optimal tree": Drafting(Model(small, OptTree(8), by_rule=True), Fixed(16)),
            "small model, chain of 20": Drafting(Model(small, Chain(20, Confidence()), by_rule=True), Fixed(20)),
            "small model and lookup": Drafting(
                Union(guessers(), Model(small, Chain(8, Confidence()), by_rule=True)), Fixed(24)
            ),
        }
    return found


def guessers() -> BestFirst:
    """Forced bytes, prompt lookup and n-grams in one tree, beside which a model adds its own."""
    return BestFirst(ForcedBytes(), PromptLookup(), NGrams())


def trained(model: TransformersModel) -> dict[str, Drafting]:
    """Heads on guided-nano, and its own layers, whose choice was searched on other texts."""
    medusa, hydra = nano_heads(model, "medusa"), nano_heads(model, "hydra")
    layers = SkippedLayers(model)
    prompts = [model.tokenizer(prompt)["input_ids"] for prompt, _ in cases("familiar", 12, "search")]
    written, _ = speculate(0, model, prompts, [None] * len(prompts), max_tokens=80, greedy=True)
    found = search_skips(0, layers, prompts, [text.tokens for text in written], rounds=40)
    print(json.dumps({"skipped": sorted(map(str, found.skipped)), "agreement": found.score, "tried": found.tried}))
    stopped = HeadStopped(nano_small(model), nano_stopping_head(), by_rule=True)
    return {
        "small model stopped by its head": Drafting(stopped, Fixed(20)),
        "medusa": Drafting(medusa, Fixed(24)),
        "hydra": Drafting(hydra, Fixed(24)),
        "eagle": Drafting(nano_eagle(model), Fixed(24)),
        "eagle, a line of 5": Drafting(line_of_eagle(model), Fixed(5)),
        "hydra and lookup, 16 nodes": Drafting(BestFirst(hydra, ForcedBytes(), PromptLookup(), NGrams()), Fixed(16)),
        "skipped layers, chain": Drafting(
            Model(layers.without(found.skipped), Chain(8, Confidence()), by_rule=True), Fixed(8)
        ),
        "early exits": Drafting(EarlyExit(early_exits(layers, [2, 3, 4, 5]), 6, by_rule=True), Fixed(8)),
    }


def line_of_eagle(model: TransformersModel) -> Eagle:
    """What is best where positions of a pass cost: no second children, and nothing that is hardly ever accepted."""
    head = nano_eagle(model).head
    if any(isinstance(module, Packed) for module in model.model.modules()):
        pack(head)
    return Eagle(head, depth=5, top=1, floor=0.2)


def published(model: TransformersModel, folders: Sequence[str]) -> dict[str, Drafting]:
    """Heads of checkpoints in the published layouts, or of files of ours, in trees of two sizes."""
    found = {}
    for folder in folders:
        for nodes in (24, 10):
            drafter = _heads(model, Path(folder))
            if isinstance(drafter, Eagle):
                drafter = Eagle(drafter.head, depth=8, top=8 if nodes > 10 else 3)
            found[f"{Path(folder).name}, {nodes} nodes"] = Drafting(drafter, Fixed(nodes))
    return found


def adapted(model: TransformersModel, exits: Sequence[str]) -> dict[str, Drafting]:
    """Kangaroo's adapters, each given as ``BLOCKS=FILE``."""
    found = {}
    for given in exits:
        blocks, _, file = given.partition("=")
        draft = AdaptedExit(SkippedLayers(model), int(blocks))
        draft.load(file)
        found[f"adapter after {blocks} blocks"] = Drafting(
            Model(draft.model, Chain(8, Confidence()), by_rule=True), Fixed(8)
        )
    return found


def own_targets(
    model: TransformersModel, prompts: str | None, shared: Sequence[str]
) -> tuple[dict[str, Drafting], dict[str, LanguageModel]]:
    """Drafts that verify with a model of their own, of the same law, and these models: PPD's, and one cut in two."""
    found: dict[str, Drafting] = {}
    targets: dict[str, LanguageModel] = {}
    if prompts:
        prompted = PromptTokens(model, 3)
        prompted.load(prompts)
        for places in (24, 10):
            found[f"prompt tokens, {places} places"] = Drafting(prompted.drafter(), Fixed(places))
            targets[f"prompt tokens, {places} places"] = prompted.model
    for given in shared:
        blocks, _, file = given.partition("=")
        layers = SkippedLayers(model)
        adapter = AdaptedExit(layers, int(blocks))
        adapter.load(file)
        exit_ = SharedExit(layers, int(blocks), adapter)
        found[f"adapter after {blocks} blocks, shared"] = Drafting(exit_.drafter(8), Fixed(8))
        targets[f"adapter after {blocks} blocks, shared"] = exit_.target
    return found, targets


def _heads(model: TransformersModel, path: Path) -> Drafter:
    """A file of heads, or a folder of prefixed heads, as the trainers save them, or a published checkpoint."""
    if path.is_file():
        return Heads(load_heads(path, base_of(model)))
    if "prefix" in json.loads((path / "config.json").read_text(encoding="utf-8")):
        return Prefixed(load_prefixed(path, base_of(model)))
    return published_heads(model, path)


def deepen(model: torch.nn.Module, blocks: int) -> None:
    """Put blocks whose outputs weigh 0 behind those of a Llama until there are so many; the function stays the same."""
    layers = model.model.layers
    model.config.num_hidden_layers = max(blocks, len(layers))
    if getattr(model.config, "layer_types", None):
        model.config.layer_types = [model.config.layer_types[0]] * model.config.num_hidden_layers
    first = layers[0]
    place = next(first.parameters())
    torch.manual_seed(0)
    while len(layers) < blocks:
        block = type(first)(model.config, len(layers)).to(place.device, place.dtype).eval()
        for last in (block.self_attn.o_proj, block.mlp.down_proj):
            torch.nn.init.zeros_(last.weight)
        layers.append(block.requires_grad_(False))


def pad(model: torch.nn.Module, millions: float) -> int:
    """Widen the feed-forward layers of a Llama by units whose outputs weigh 0; how many parameters it then has.

    Every pass computes and reads the padding, and the function is the one that it was: a stand-in for the cost of a
    model of this size whose texts are guided-nano's.
    """
    blocks = model.model.layers
    missing = millions * 1e6 - sum(parameter.numel() for parameter in model.parameters())
    d = model.config.hidden_size
    extra = max(0, round(missing / (3 * d * len(blocks))))
    generator = torch.Generator().manual_seed(0)
    for block in blocks:
        for name in ("gate_proj", "up_proj"):
            weight = getattr(block.mlp, name).weight
            more = 0.02 * torch.randn((extra, d), generator=generator).to(weight)
            getattr(block.mlp, name).weight = torch.nn.Parameter(
                torch.cat([weight.detach(), more]), requires_grad=False
            )
        weight = block.mlp.down_proj.weight
        wide = torch.cat([weight.detach(), weight.new_zeros((d, extra))], dim=1)
        block.mlp.down_proj.weight = torch.nn.Parameter(wide, requires_grad=False)
    return sum(parameter.numel() for parameter in model.parameters())


class Packed(torch.nn.Module):
    """A linear layer whose weights are packed in float16 for the processor, by PyTorch's own FBGEMM.

    Products of a few rows then cost little more than those of one, for which its other kernels of float32 take two to
    three times as long: what drafts need of a processor.  Guided-nano's weights are float16 in their file.
    """

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.packed = torch.ops.quantized.linear_prepack_fp16(layer.weight.detach().float(), layer.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized.linear_dynamic_fp16(states, self.packed)


def pack(model: torch.nn.Module) -> None:
    """Pack all linear layers, for decoding plainly and with drafts alike."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(module, name, Packed(child))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--set", choices=["records", "familiar", "sql"], default="familiar")
    parser.add_argument("--pass-ms", type=float, default=0.0)
    parser.add_argument("--model", default="nano")
    parser.add_argument("--small", help="a folder with a draft model of the same tokenizer")
    parser.add_argument("--trained", action="store_true", help="with the drafts trained for guided-nano")
    parser.add_argument("--only", nargs="*", help="of the drafts, those whose names hold one of these")
    parser.add_argument(
        "--heads", nargs="*", default=[], help="folders of published checkpoints for the model, files of heads"
    )
    parser.add_argument("--adapted", nargs="*", default=[], metavar="BLOCKS=FILE", help="adapters after some blocks")
    parser.add_argument("--shared", nargs="*", default=[], metavar="BLOCKS=FILE", help="the same, the blocks shared")
    parser.add_argument("--prompts", metavar="FILE", help="prompt tokens (PPD)")
    parser.add_argument("--padded", type=float, default=0.0, help="millions of parameters to widen the model to")
    parser.add_argument("--packed", action="store_true", help="pack the target's weights for the processor")
    parser.add_argument("--blocks", type=int, default=0, help="blocks that the padded model has")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sample", type=float, default=0.0, help="draw tokens at this temperature")
    parser.add_argument("--max-tokens", type=int, default=160)
    options = parser.parse_args()
    torch.set_num_threads(1)
    loaded = load(options.model, device=options.device)
    small = TransformersModel(load(options.small, device=options.device)) if options.small else None
    if options.trained and small is None:
        small = nano_small(TransformersModel(loaded))
    chosen = cases(options.set, options.texts)
    prompts = [loaded.tokenizer(prompt)["input_ids"] for prompt, _ in chosen]
    grammars = [guided.compile(grammar, loaded.vocabulary) for _, grammar in chosen]
    if options.blocks:
        deepen(loaded.model, options.blocks)
    if options.padded:
        print(json.dumps({"parameters": pad(loaded.model, options.padded)}))
    if options.packed:
        pack(loaded.model)
    if options.pass_ms:
        _slow_down(loaded.model, options.pass_ms / 1000)
    print(json.dumps({"run": vars(options)}))
    if options.sample:
        return sampled(TransformersModel(loaded), small, prompts, grammars, options)
    ways = drafts(small) | (trained(TransformersModel(loaded)) if options.trained else {})
    ways |= published(TransformersModel(loaded), options.heads) | adapted(TransformersModel(loaded), options.adapted)
    more, targets = own_targets(TransformersModel(loaded), options.prompts, options.shared)
    ways |= more
    ways = {name: way for name, way in ways.items() if not options.only or any(word in name for word in options.only)}
    lines = measure_drafts(
        loaded, prompts, grammars, ways, max_tokens=options.max_tokens,
        assistant=None if small is None else small.model, targets=targets,
    )  # fmt: skip
    plain = next(line for line in lines if line.name == PLAIN)
    print(f"{'':36} passes/token  acceptance  speed  different")
    for line in lines:
        accepted = "" if line.acceptance is None else f"{line.acceptance:.2f}"
        speed = line.tokens_per_second / plain.tokens_per_second
        print(
            f"{line.name:36} {line.passes_per_token:12.3f} {accepted:>11} {speed:6.2f} {line.different:6d}/{line.texts}"
        )


def sampled(
    target: TransformersModel,
    small: TransformersModel | None,
    prompts: Sequence[Sequence[int]],
    grammars: Sequence[guided.Constraint],
    options: argparse.Namespace,
) -> None:
    """Ways to draw and to verify drafts: passes of the target for each token, over different texts of one law."""
    model = transformed(target, temperature=options.sample)
    assert small is not None, "give --small, or --trained for guided-nano's"
    ranks = measure_ranks(1, model, small, prompts[:6], grammars[:6], ranks=4, max_tokens=options.max_tokens)
    plan = optimal_tree(ranks, 16, 8)
    print(json.dumps({"ranks": [round(share, 4) for share in ranks], "plan": round(plan.accepted, 3)}))
    ways = {
        "chain of 8": Drafting(Model(small, Chain(8)), Fixed(8)),
        "chain of 8, by block": Drafting(Model(small, Chain(8)), Fixed(8), by_block=True),
        "4 independent sequences of 4": Drafting(Model(small, Independent(4, 4)), Fixed(16)),
        "tree of 4, 2, 1 and 1": Drafting(Model(small, Branching((4, 2, 1, 1))), Fixed(28)),
        "planned tree, 16 nodes": Drafting(Model(small, plan.shape), Fixed(16)),
        "suffixes, 16 nodes": Drafting(Suffixes(), Fixed(16)),
        "lookahead, 30 nodes": Drafting(Lookahead(5, 4, 5), Fixed(30)),
    }
    for name, way in ways.items():
        if options.only and not any(word in name for word in options.only):
            continue
        counts = Statistics()
        began = time.perf_counter()
        for seed in range(3):
            for prompt, grammar in zip(prompts, grammars, strict=True):
                _, more = speculate(
                    seed, model, [prompt], [grammar], way.drafter, max_tokens=options.max_tokens, policy=way.policy,
                    by_block=way.by_block,
                )  # fmt: skip
                counts += more
        seconds = time.perf_counter() - began
        print(f"{name:36} {counts.passes_per_token:12.3f} {counts.acceptance:11.2f} {counts.tokens / seconds:6.0f}/s")


def _slow_down(model: torch.nn.Module, seconds: float) -> None:
    """Make each forward pass last at least so long."""
    began = 0.0

    def begin(*_: object) -> None:
        nonlocal began
        began = time.perf_counter()

    def end(*_: object) -> None:
        time.sleep(max(0.0, began + seconds - time.perf_counter()))

    model.register_forward_pre_hook(begin)
    model.register_forward_hook(end)


if __name__ == "__main__":
    main()

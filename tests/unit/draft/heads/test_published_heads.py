"""Checkpoints in the published layouts draft what reference forward passes, written here in plain torch, say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

import guided
from guided.draft import Base, Eagle, Fixed, Heads, Prefixed, load_published, most_frequent, speculate
from guided.errors import GuidedError, UnsupportedError, VocabularyError
from guided.lm.table import TableModel
from tests.tolerances import SINGLE

WIDTH, D, END = 12, 8, 11
HEADS, KV, HEAD = 4, 2, 4
"""Attention heads, those of keys, and their width, which is not D over HEADS."""
_GENERATOR = torch.Generator().manual_seed(5)
DEPTH, TOP, NODES = 3, 3, 7


def random(*shape):
    return torch.randn(*shape, generator=_GENERATOR) * 0.6


EMBEDDINGS, OUTPUTS = random(WIDTH, D), random(WIDTH, D)
BASE = Base(EMBEDDINGS, OUTPUTS)
LLAMA = {
    "hidden_size": D, "intermediate_size": 10, "num_attention_heads": HEADS, "num_key_value_heads": KV,
    "head_dim": HEAD, "vocab_size": WIDTH, "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 500.0,
    "num_hidden_layers": 1, "pad_token_id": 0, "max_position_embeddings": 64,
}  # fmt: skip


def block(prefix, inputs=D, norms=("post_attention_layernorm",)):
    return {
        f"{prefix}.self_attn.q_proj.weight": random(HEADS * HEAD, inputs),
        f"{prefix}.self_attn.k_proj.weight": random(KV * HEAD, inputs),
        f"{prefix}.self_attn.v_proj.weight": random(KV * HEAD, inputs),
        f"{prefix}.self_attn.o_proj.weight": random(D, HEADS * HEAD),
        f"{prefix}.mlp.gate_proj.weight": random(10, D),
        f"{prefix}.mlp.up_proj.weight": random(10, D),
        f"{prefix}.mlp.down_proj.weight": random(D, 10),
        **{f"{prefix}.{norm}.weight": 1 + 0.3 * random(D) for norm in norms},
    }


def published(folder, config, tensors, name="pytorch_model.bin"):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(tensors, folder / name)
    return folder


def norm(states, weight):
    return weight * states / torch.sqrt((states**2).mean(-1, keepdim=True) + 1e-5)


def attention(tensors, prefix, states):
    """Causal attention over a line, head by head."""
    n, half = len(states), HEAD // 2
    angles = torch.tensor([[at * 500.0 ** (-2 * i / HEAD) for i in range(half)] for at in range(n)])
    later = torch.ones(n, n).triu(1).bool()

    def turned(vectors):
        first, second = vectors[:, :half], vectors[:, half:]
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1
        )

    q, k, v = (states @ tensors[f"{prefix}.{name}_proj.weight"].T for name in "qkv")
    found = torch.zeros(n, HEADS * HEAD)
    for head in range(HEADS):
        own, other = slice(head * HEAD, (head + 1) * HEAD), head // (HEADS // KV)
        shared = slice(other * HEAD, (other + 1) * HEAD)
        scores = turned(q[:, own]) @ turned(k[:, shared]).T / math.sqrt(HEAD)
        found[:, own] = scores.masked_fill(later, -torch.inf).softmax(-1) @ v[:, shared]
    return found @ tensors[f"{prefix}.o_proj.weight"].T


def mlp(tensors, prefix, states):
    gate, up = (states @ tensors[f"{prefix}.{name}_proj.weight"].T for name in ("gate", "up"))
    return (gate / (1 + torch.exp(-gate)) * up) @ tensors[f"{prefix}.down_proj.weight"].T


EAGLE = {
    "embed_tokens.weight": random(WIDTH, D), "fc.weight": random(D, 2 * D), "fc.bias": random(D), **block("layers.0")
}  # fmt: skip
KNOWN = [0, 1, 2, 4, 5, 7, 8, 9, 11]
EAGLE3 = {
    "d2t": torch.tensor([known - i for i, known in enumerate(KNOWN)]),
    "t2d": torch.tensor([i in KNOWN for i in range(WIDTH)]),
    "embed_tokens.weight": random(WIDTH, D),
    "fc.weight": random(D, 3 * D),
    "lm_head.weight": random(len(KNOWN), D),
    "norm.weight": 1 + 0.3 * random(D),
    **block("midlayer", 2 * D, ("hidden_norm", "input_layernorm", "post_attention_layernorm")),
}


def eagle_line(features, tokens):
    """What EAGLE-1 says after ``tokens``, whose first ``len(features)`` the target has seen."""
    features = list(features)
    while True:
        after = tokens[1 : len(features) + 1]
        read = torch.cat([EAGLE["embed_tokens.weight"][after], torch.stack(features)], -1)
        states = read @ EAGLE["fc.weight"].T + EAGLE["fc.bias"]
        states = states + attention(EAGLE, "layers.0.self_attn", states)
        states = states + mlp(EAGLE, "layers.0.mlp", norm(states, EAGLE["layers.0.post_attention_layernorm.weight"]))
        if len(features) + 1 == len(tokens):
            return states[-1] @ OUTPUTS.T
        features.append(states[-1])


def eagle3_line(features, tokens):
    """The same for EAGLE-3, whose own features follow the fused ones."""
    states = [feature @ EAGLE3["fc.weight"].T for feature in features]
    while True:
        read, prefix = torch.stack(states), "midlayer"
        embedded = EAGLE3["embed_tokens.weight"][tokens[1 : len(states) + 1]]
        both = torch.cat(
            [
                norm(embedded, EAGLE3["midlayer.input_layernorm.weight"]),
                norm(read, EAGLE3["midlayer.hidden_norm.weight"]),
            ],
            -1,
        )
        out = read + attention(EAGLE3, f"{prefix}.self_attn", both)
        out = out + mlp(EAGLE3, f"{prefix}.mlp", norm(out, EAGLE3["midlayer.post_attention_layernorm.weight"]))
        if len(states) + 1 == len(tokens):
            found = torch.full((WIDTH,), -torch.inf)
            found[KNOWN] = norm(out[-1], EAGLE3["norm.weight"]) @ EAGLE3["lm_head.weight"].T
            return found
        states.append(out[-1])


def reference_tree(line, features, tokens, allowed, free):
    """EAGLE-2's tree by recomputation of every path: drafted paths."""
    values = {(): 1.0}
    level, found = [()], []
    for _ in range(DEPTH):
        children = []
        for path in level:
            logits = line(features, [*tokens, *path])
            logits = torch.where(torch.tensor([allowed(path, t) for t in range(WIDTH)]), logits, -torch.inf)
            if not torch.isfinite(logits).any():
                continue
            shares = logits.softmax(0)
            for token in shares.argsort(descending=True)[:TOP].tolist():
                if shares[token] > 0:
                    values[(*path, token)] = values[path] * float(shares[token])
                    children.append((*path, token))
        found += children
        level = sorted(children, key=lambda path: -values[path])[:TOP]
        level = [path for path in level if path[-1] != END or free]
    return set(sorted(found, key=lambda path: -values[path])[:NODES])


def paths(proposal):
    tree = proposal.tree
    return {tuple(tree.tokens[node] for node in tree.path(last)) for last in range(len(tree))}


class Watched:
    """A drafter that is compared with a reference in every round."""

    def __init__(self, drafter, check):
        self.drafters = (drafter,)
        self.needs = drafter.needs
        self.check, self.rounds, self.nodes, self.unseen = check, 0, 0, set()

    def draft(self, chance, contexts):
        found = self.drafters[0].draft(chance, contexts)
        for context, proposal in zip(contexts, found, strict=True):
            self.check(context, proposal)
            self.rounds, self.nodes = self.rounds + 1, max(self.nodes, len(proposal))
            self.unseen.add(context.n_unseen)
        return found

    def learn(self, observed):
        self.drafters[0].learn(observed)

    def leave(self, rows):
        self.drafters[0].leave(rows)


VOCABULARY = guided.Vocabulary.from_tokens([bytes([97 + i]) for i in range(WIDTH - 1)] + [None], eos_ids=[END])
FORCING = guided.compile(guided.regex("([a-h]abc|[i-k][d-k])*"), VOCABULARY)
"""After some letters the grammar leaves no choice, so that the head must go on by itself."""


def run_against(line, head, features_width, constraint):
    def hidden(tokens):
        return 0.7 * np.random.default_rng([9, *tokens[-3:]]).standard_normal(features_width)

    def logprobs(tokens):
        # Texts are to go on for several rounds.
        return random_model.logprobs(tokens) - 9.0 * (np.arange(WIDTH) == END)

    random_model = TableModel.random(3, width=WIDTH, eos_ids=[END], order=2)
    model = TableModel(logprobs, width=WIDTH, eos_ids=[END], hidden=hidden)

    def check(context, proposal):
        tokens = list(context.tokens)
        seen = len(tokens) - context.n_unseen
        features = [torch.tensor(hidden(tuple(tokens[: i + 1]))).float() for i in range(seen)]

        def allowed(path, token):
            if constraint is None:
                return True
            state = context.state
            for one in path:
                state = constraint.advance(state, one)
            left = context.left(len(path))
            masks = context.row_masks.allowed(state, left, WIDTH)
            return bool(masks[token])

        if context.depth >= DEPTH:
            assert paths(proposal) == reference_tree(line, features, tokens, allowed, constraint is None)

    drafter = Watched(Eagle(head, depth=DEPTH, top=TOP), check)
    rng = np.random.default_rng(0)
    speculate(rng, model, [[3, 1, 4], [5]], [constraint] * 2, drafter, max_tokens=20, policy=Fixed(NODES))
    assert drafter.rounds > 3 and drafter.nodes == NODES
    return drafter


@pytest.mark.parametrize("constraint", [None, FORCING], ids=["free", "constrained"])
def test_eagle_drafts_what_its_reference_says(tmp_path, constraint):
    head = load_published(published(tmp_path, LLAMA, EAGLE), BASE)
    drafter = run_against(eagle_line, head, D, constraint)
    assert constraint is None or max(drafter.unseen) > 2


@pytest.mark.parametrize("constraint", [None, FORCING], ids=["free", "constrained"])
def test_eagle_3_drafts_what_its_reference_says(tmp_path, constraint):
    config = {**LLAMA, "draft_vocab_size": len(KNOWN)}
    head = load_published(published(tmp_path, config, EAGLE3), BASE, layers=9)
    assert head.blocks == (2, 4, 6)
    head.blocks = ()  # The table gives its fused states as they are.
    run_against(eagle3_line, head, 3 * D, constraint)
    with pytest.raises(GuidedError, match="layers="):
        load_published(tmp_path, BASE)


def contexts_of(hidden):
    from guided.draft import Context

    return [Context(row, [2, 7 + row], 1, None, 1, 12, 1, state) for row, state in enumerate(hidden)]


def static_tree(scores, nodes, heads):
    """Every path of the static tree by ranks, from scores after a path."""
    from guided.draft.heads.head_tree import best_nodes

    found = set()
    for ranks in best_nodes([[0.5 / 2**rank for rank in range(10)]] * heads, nodes):
        path = ()
        for rank in ranks:
            order = scores(path).argsort(descending=True)
            path = (*path, int(order[rank]))
        found.add(path)
    return found


def check_heads(heads, reference, count=3):
    hidden = random(2, D)
    assert heads.settings.heads >= count
    proposals = Heads(heads).draft(None, contexts_of(hidden))
    for row, proposal in enumerate(proposals):
        tokens = [7 + row]
        scores = lambda path, row=row, tokens=tokens: reference(hidden[row], [*tokens, *path])  # noqa: E731
        assert paths(proposal) == static_tree(scores, 12, heads.settings.heads)
        with torch.inference_mode():
            given = heads(hidden[row : row + 1], torch.tensor([[*tokens, 3]]))[0]
        assert torch.allclose(given, reference(hidden[row], [*tokens, 3]), atol=SINGLE)


def silu(x):
    return x / (1 + torch.exp(-x))


@pytest.mark.parametrize("prefix", ["", "medusa_head."])
def test_medusa_drafts_what_its_reference_says(tmp_path, prefix):
    tensors = {}
    for head in range(3):
        for layer in range(2):
            tensors[f"{prefix}{head}.{layer}.linear.weight"] = random(D, D)
            tensors[f"{prefix}{head}.{layer}.linear.bias"] = random(D)
        tensors[f"{prefix}{head}.2.weight"] = random(WIDTH, D)
    config = {"medusa_num_heads": 2, "medusa_num_layers": 2, "base_model_name_or_path": "somebody/some-model"}

    def reference(hidden, tokens):
        for layer in range(2):
            name = f"{prefix}{len(tokens) - 1}.{layer}.linear"
            hidden = hidden + silu(tensors[f"{name}.weight"] @ hidden + tensors[f"{name}.bias"])
        return tensors[f"{prefix}{len(tokens) - 1}.2.weight"] @ hidden

    check_heads(load_published(published(tmp_path, config, tensors, "medusa_lm_head.pt"), BASE), reference)


@pytest.mark.parametrize("dropout", [False, True])
def test_hydra_drafts_what_its_reference_says(tmp_path, dropout):
    step, tensors = (2 if dropout else 1), {}
    for head in range(3):
        for layer in range(2):
            name = f"hydra_mlp.{head}.{layer * step + dropout}"
            inputs = D * (head + 2) if not layer else D
            for part in ("linear", "res_connection") if not layer else ("linear",):
                tensors[f"{name}.{part}.weight"], tensors[f"{name}.{part}.bias"] = random(D, inputs), random(D)
        tensors[f"hydra_lm_head.{head}{'.1' if dropout else ''}.weight"] = random(WIDTH, D)
        tensors[f"hydra_lm_head.{head}{'.1' if dropout else ''}.bias"] = random(WIDTH)
    config = {"hydra_num_heads": 3, "hydra_num_layers": 2, "hydra_head_arch": "mlp", "grounded_heads": True}

    def reference(hidden, tokens):
        head = len(tokens) - 1
        names = [f"hydra_mlp.{head}.{layer * step + dropout}" for layer in range(2)]
        read = torch.cat([hidden, *EMBEDDINGS[tokens]])
        both = [tensors[f"{names[0]}.{part}.weight"] @ read + tensors[f"{names[0]}.{part}.bias"] for part in
                ("res_connection", "linear")]  # fmt: skip
        state = both[0] + silu(both[1])
        state = state + silu(tensors[f"{names[1]}.linear.weight"] @ state + tensors[f"{names[1]}.linear.bias"])
        last = f"hydra_lm_head.{head}{'.1' if dropout else ''}"
        return tensors[f"{last}.weight"] @ state + tensors[f"{last}.bias"]

    check_heads(load_published(published(tmp_path, config, tensors, "hydra_lm_head.pt"), BASE), reference)
    other = {**config, "hydra_head_arch": "cross-attention"}
    with pytest.raises(UnsupportedError, match="cross-attention"):
        load_published(published(tmp_path, other, tensors, "hydra_lm_head.pt"), BASE)


@pytest.mark.parametrize("constraint", [None, FORCING], ids=["free", "constrained"])
def test_prefixed_hydra_drafts_what_its_reference_says(tmp_path, constraint):
    """Along whole texts: the block over all that the target has read, computed anew for each round."""
    name = "prefix_embeding_layer"
    tensors = {
        f"{name}.embed_tokens.weight": random(WIDTH, D), f"{name}.norm.weight": 1 + 0.3 * random(D),
        **block(f"{name}.layers.0", norms=("input_layernorm", "post_attention_layernorm")),
    }  # fmt: skip
    for head in range(3):
        for part in ("linear", "res_connection"):
            tensors[f"hydra_mlp.{head}.1.{part}.weight"] = random(D, D * (head + 2))
            tensors[f"hydra_mlp.{head}.1.{part}.bias"] = random(D)
        tensors[f"hydra_lm_head.{head}.1.weight"] = random(WIDTH, D)
        tensors[f"hydra_lm_head.{head}.1.bias"] = random(WIDTH)
    config = {"hydra_num_heads": 3, "hydra_num_layers": 1, "hydra_head_arch": "prefix-mlp", "grounded_heads": True}
    folder = published(tmp_path, config, tensors, "hydra_lm_head.pt")
    with pytest.raises(GuidedError, match="model="):
        load_published(folder, BASE)
    heads = load_published(folder, BASE, model=LLAMA)

    def hidden(tokens):
        return 0.7 * np.random.default_rng([9, *tokens[-3:]]).standard_normal(D)

    random_model = TableModel.random(3, width=WIDTH, eos_ids=[END], order=2)
    model = TableModel(
        lambda tokens: random_model.logprobs(tokens) - 9.0 * (np.arange(WIDTH) == END), width=WIDTH, eos_ids=[END],
        hidden=hidden,
    )  # fmt: skip

    def scores(states, tokens):
        layer = f"{name}.layers.0"
        states = states + attention(
            tensors, f"{layer}.self_attn", norm(states, tensors[f"{layer}.input_layernorm.weight"])
        )
        states = states + mlp(
            tensors, f"{layer}.mlp", norm(states, tensors[f"{layer}.post_attention_layernorm.weight"])
        )
        read = torch.cat([norm(states, tensors[f"{name}.norm.weight"])[-1], *EMBEDDINGS[tokens]])
        head = len(tokens) - 1
        both = [tensors[f"hydra_mlp.{head}.1.{part}.weight"] @ read + tensors[f"hydra_mlp.{head}.1.{part}.bias"] for part
                in ("res_connection", "linear")]  # fmt: skip
        return (
            tensors[f"hydra_lm_head.{head}.1.weight"] @ (both[0] + silu(both[1]))
            + tensors[f"hydra_lm_head.{head}.1.bias"]
        )

    def check(context, proposal):
        tokens, unseen = list(context.tokens), context.n_unseen
        states = torch.stack(
            [torch.tensor(hidden(tuple(tokens[: i + 1]))).float() for i in range(len(tokens) - unseen)]
        )
        if constraint is None and unseen == 1 and context.depth >= 3:
            wanted = static_tree(lambda path: scores(states, [*tokens[-1:], *path]), NODES, 3)
            assert paths(proposal) == wanted
        elif unseen <= 3 and context.depth >= 3:
            for path in paths(proposal):
                own = scores(states, [*tokens[-unseen:], *path[:-1]])
                state = context.state
                for token in path[:-1]:
                    state = context.row_masks.advance(state, token)
                allowed = context.row_masks.allowed(state, context.left(len(path) - 1), WIDTH)
                likelier = (own > own[path[-1]]) & torch.from_numpy(
                    np.ones(WIDTH, bool) if allowed is None else allowed
                )
                assert int(likelier.sum()) < 4, "of the likeliest allowed, as the static tree has them"

    drafter = Watched(Prefixed(heads), check)
    rng = np.random.default_rng(0)
    speculate(rng, model, [[3, 1, 4], [5]], [constraint] * 2, drafter, max_tokens=20, policy=Fixed(NODES))
    assert drafter.rounds > 3 and drafter.nodes >= 3
    assert constraint is None or max(drafter.unseen) > 2


@pytest.mark.parametrize("rnn", [False, True])
def test_redrafter_drafts_what_its_reference_says(tmp_path, rnn):
    exit_size = 6 if rnn else 2 * D
    tensors = {"lm_head.0.linear.weight": random(exit_size, exit_size), "lm_head.0.linear.bias": random(exit_size),
               "lm_head.1.weight": random(WIDTH, exit_size)}  # fmt: skip
    if rnn:
        tensors |= {"input_proj.weight": random(exit_size, 2 * D), "input_proj.bias": random(exit_size),
                    "rnn_u.weight": random(D, D), "rnn_u.bias": random(D), "rnn_w.weight": random(D, D)}  # fmt: skip
    config = {"model_type": "recurrent_drafting_drafter", "vocab_size": WIDTH, "hidden_size": D,
              "exit_dim": exit_size, "num_draft_layers": 1, "rnn": rnn}  # fmt: skip

    def reference(hidden, tokens):
        state = torch.zeros(D)
        for embedded in EMBEDDINGS[tokens]:
            state = state + embedded if not rnn else silu(
                tensors["rnn_w.weight"] @ embedded + tensors["rnn_u.weight"] @ state + tensors["rnn_u.bias"]
            )  # fmt: skip
        read = torch.cat([hidden, state])
        if rnn:
            read = tensors["input_proj.weight"] @ read + tensors["input_proj.bias"]
        read = read + silu(tensors["lm_head.0.linear.weight"] @ read + tensors["lm_head.0.linear.bias"])
        return tensors["lm_head.1.weight"] @ read

    from safetensors.torch import save_file

    folder = published(tmp_path, config, {}, "pytorch_model.bin")
    save_file(tensors, str(folder / "model.safetensors"))
    check_heads(load_published(folder, BASE), reference)


def test_folders_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(GuidedError, match="no checkpoint"):
        load_published(tmp_path, BASE)
    for change, match in (
        ({"fc.weight": None}, "no known layout"),
        ({"layers.0.mlp.up_proj.weight": None}, "not those that"),
        ({"layers.0.extra.weight": random(2)}, "not those that"),
        ({"layers.0.mlp.up_proj.weight": random(3, D)}, "not those that"),
    ):
        tensors = {name: tensor for name, tensor in {**EAGLE, **change}.items() if tensor is not None}
        with pytest.raises(GuidedError, match=match):
            load_published(published(tmp_path, LLAMA, tensors), BASE)
    scaled = {**LLAMA, "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    with pytest.raises(UnsupportedError, match="dynamic"):
        load_published(published(tmp_path, scaled, EAGLE), BASE)
    other = {name: tensor for name, tensor in EAGLE.items() if name != "embed_tokens.weight"}
    folder = published(tmp_path, LLAMA, other)
    with pytest.raises(VocabularyError, match="head reads"):
        load_published(folder, Base(random(WIDTH, 5), random(WIDTH, 5)))


def test_most_frequent_ids_are_kept_in_order():
    assert most_frequent([[3, 3, 1], [5, 1, 3]], 6, 2).tolist() == [1, 3]
    assert most_frequent([[4]], 5, 3).tolist() == [0, 1, 4]
    with pytest.raises(GuidedError):
        most_frequent([[1]], 3, 4)

"""The Transformers model: the contract on many architectures, and its scores against plain passes of transformers."""

from __future__ import annotations

import copy
import inspect
import threading

import pytest
import torch
import transformers.cache_utils
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    FalconH1Config,
    Gemma2Config,
    Gemma3TextConfig,
    GPTNeoConfig,
    Llama4TextConfig,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    OPTConfig,
    Qwen2Config,
    Qwen3NextConfig,
)

from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.hf import load
from guided.hf.language_model import Caching, TransformersModel
from guided.lm import LanguageModel, Needs, Tree, next_logits
from guided.testing import check_language_model
from tests.amounts import each, some
from tests.tolerances import PASSES, SINGLE

KEEPS_STATES = (
    "number_of_states"
    in inspect.signature(getattr(transformers.cache_utils, "LinearAttentionLayer", object)).parameters
)
"""Whether this release of transformers keeps states as the newest does; before 5.16 such models are read again."""

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

CONFIGS = {
    "llama-gqa": lambda: LlamaConfig(**SMALL, num_key_value_heads=2),
    "mistral-window": lambda: MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=5),
    "gemma2": lambda: Gemma2Config(**SMALL, num_key_value_heads=2, head_dim=8, sliding_window=5),
    "gemma3": lambda: Gemma3TextConfig(**SMALL, num_key_value_heads=2, head_dim=8, sliding_window=5),
    "qwen2": lambda: Qwen2Config(**SMALL, num_key_value_heads=2),
    "opt": lambda: OPTConfig(**{**SMALL, "ffn_dim": 48}, word_embed_proj_dim=32),
    "llama4-chunks": lambda: Llama4TextConfig(
        **{**SMALL, "num_hidden_layers": 2},
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size_mlp=48,
        num_local_experts=2,
        attention_chunk_size=8,
        no_rope_layers=[1, 0],
    ),
    "gpt-neo": lambda: GPTNeoConfig(
        vocab_size=96,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global", "local"], 1]],
        window_size=5,
        eos_token_id=2,
        bos_token_id=1,
    ),
    "bloom": lambda: BloomConfig(vocab_size=96, hidden_size=32, n_layer=2, n_head=4, eos_token_id=2, pad_token_id=3),
    "qwen3-next": lambda: Qwen3NextConfig(
        **{**SMALL, "num_hidden_layers": 2},
        num_key_value_heads=2,
        head_dim=8,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    ),
    "falcon-h1": lambda: FalconH1Config(
        **{**SMALL, "num_hidden_layers": 2},
        num_key_value_heads=2,
        mamba_d_ssm=32,
        mamba_n_heads=4,
        mamba_d_head=8,
        mamba_d_state=8,
    ),
    "mamba": lambda: MambaConfig(vocab_size=96, hidden_size=32, num_hidden_layers=2, state_size=4, eos_token_id=2),
}


def build(name: str, dtype: torch.dtype = torch.float32, **options):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIGS[name](), **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4.0)
    return model.to(dtype)


@pytest.fixture(scope="session")
def small() -> TransformersModel:
    return TransformersModel(build("llama-gqa"))


def plain(model, tokens, prompt=None) -> torch.Tensor:
    """What transformers says after the tokens, with nothing of ours."""
    ids = torch.tensor([list(tokens)])
    with torch.no_grad():
        if prompt is None:
            return model(input_ids=ids, use_cache=False).logits[0, -1]
        start = torch.tensor([[model.config.decoder_start_token_id, *tokens]])
        return model(input_ids=torch.tensor([list(prompt)]), decoder_input_ids=start, use_cache=False).logits[0, -1]


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart"])
def test_contract(name, request):
    check_language_model(TransformersModel(request.getfixturevalue(name)), steps=some(30, 10))


@pytest.mark.parametrize("name", each(CONFIGS, 2))
def test_contract_of_architectures(name):
    model = TransformersModel(build(name))
    expected = {"bloom": Caching.ALIGNED, "gpt-neo": Caching.ALIGNED}
    expected["mamba"] = Caching.STATES if KEEPS_STATES else Caching.NONE
    expected |= dict.fromkeys(("falcon-h1", "qwen3-next"), Caching.PIECES if KEEPS_STATES else Caching.NONE)
    assert model.caching is expected.get(name, Caching.RAGGED)
    check_language_model(model, steps=some(20, 8), rows=4, length=12)


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_contract_where_rows_that_are_gone_are_forgotten(name, request, monkeypatch):
    monkeypatch.setattr("guided.hf.cache.sequences.MANY_PREFIXES", 0)
    check_language_model(TransformersModel(request.getfixturevalue(name)), steps=some(30, 10))


def test_rows_that_come_and_go_leave_nothing_behind(llama, monkeypatch):
    monkeypatch.setattr("guided.hf.cache.sequences.MANY_PREFIXES", 50)
    sequences = TransformersModel(llama).start([[5, 6]])
    for number in range(60):
        sequences.join([[7 + number % 50, number % 11, 3, 4, 5]])
        sequences.extend([[8]] + [[9]] * (len(sequences) - 1))
        sequences.select([0, *range(max(1, len(sequences) - 2), len(sequences))])
        if number % 5 == 0:
            sequences.crop([2, *[len(sequences.tokens(row)) for row in range(1, len(sequences))]])
    assert len(sequences._prefixes) < 150 and len(sequences._prompts) < 20


def test_contract_without_a_cache(llama):
    check_language_model(TransformersModel(llama, caching=Caching.NONE), steps=some(15, 2))


def test_contract_of_rows_of_equal_length(llama):
    check_language_model(TransformersModel(llama, caching=Caching.ALIGNED), steps=some(20, 2))


def test_contract_in_float64():
    check_language_model(TransformersModel(build("llama-gqa", torch.float64)), steps=some(20, 10))


def test_contract_with_eager_attention():
    check_language_model(TransformersModel(build("gemma2", attn_implementation="eager")), steps=some(20, 10))


def test_half_precision_is_raised():
    model = TransformersModel(build("llama-gqa", torch.bfloat16))
    assert model.caching is Caching.RAGGED
    assert model.start([[5, 6]], Needs(layers=(1,), hidden=True)).last.logits.dtype == torch.float32
    check_language_model(model, steps=some(15, 4), tolerance=5e-2)


def test_the_packaged_model():
    loaded = load()
    model = TransformersModel(loaded)
    assert isinstance(model, LanguageModel) and model.eos_ids == frozenset(loaded.vocabulary.eos_ids)
    prompt = loaded.tokenizer("Extract the name")["input_ids"]
    rows = model.start([prompt, prompt[:2]])
    rows.extend([[11], [12, 13]])
    assert torch.allclose(rows.last.logits[0], plain(loaded.model, [*prompt, 11]), atol=PASSES)
    assert torch.allclose(rows.last.logits[1], plain(loaded.model, [*prompt[:2], 12, 13]), atol=PASSES)


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart"])
def test_scores_are_those_of_transformers(name, request):
    model = request.getfixturevalue(name)
    ours = TransformersModel(model)
    prompts = [[7, 8, 9], [10, 11, 12, 13, 14], [7, 8, 9]]
    rows = ours.start(prompts)
    rows.extend([[20], [21, 22, 23], [24, 25]])
    encoder = ours.can.encoder
    for number, prompt in enumerate(prompts):
        added = rows.tokens(number)[len(prompt) :]
        expected = plain(model, added, prompt) if encoder else plain(model, [*prompt, *added])
        assert torch.allclose(rows.last.logits[number], expected, atol=SINGLE, rtol=SINGLE)


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5"])
def test_layers_read_early(name, request):
    model = request.getfixturevalue(name)
    tokens, prompt = [7, 8, 9, 30], [4, 5]
    ours = TransformersModel(model)
    with torch.no_grad():
        if ours.can.encoder:
            out = model(
                input_ids=torch.tensor([prompt]),
                decoder_input_ids=torch.tensor([[0, *tokens]]),
                output_hidden_states=True,
                use_cache=False,
            )
            states, norm = out.decoder_hidden_states, model.decoder.final_layer_norm
            head = lambda h: model.lm_head(h * (32**-0.5) if model.config.scale_decoder_outputs else h)  # noqa: E731
        else:
            out = model(input_ids=torch.tensor([tokens]), output_hidden_states=True, use_cache=False)
            states = out.hidden_states
            norm = model.model.norm if name == "llama" else model.transformer.ln_f
            head = model.lm_head
        expected = [head(norm(states[layer][0, -1])) for layer in (0, 1)]
        raw = head(states[1][0, -1])
    for needs, layer, wanted in (
        (Needs(layers=(0, 1, -2)), 0, expected[0]),
        (Needs(layers=(0, 1, -2)), 1, expected[1]),
        (Needs(layers=(0, 1, -2)), -2, expected[1]),
        (Needs(layers=(1,), final_norm=False), 1, raw),
        (Needs(layers=(2, -1)), 2, out.logits[0, -1]),
        (Needs(layers=(2, -1)), -1, out.logits[0, -1]),
    ):
        rows = ours.start([prompt if ours.can.encoder else tokens[:2]], needs)
        rows.extend([tokens if ours.can.encoder else tokens[2:]])
        assert torch.allclose(rows.last.layers[layer], wanted[None], atol=SINGLE, rtol=SINGLE)


def test_hidden_states_are_what_the_head_reads(llama):
    last = TransformersModel(llama).start([[7, 8, 9]], Needs(hidden=True)).last
    assert torch.allclose(llama.lm_head(last.hidden), last.logits, atol=SINGLE)


@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart"])
def test_masked_heads(name, request):
    """Against a model whose weights for what these heads say are zero."""
    model = request.getfixturevalue(name)
    heads = ((0, 1), (0, 3))
    cut = copy.deepcopy(model)
    width = 8
    with torch.no_grad():
        for _, head in heads:
            part = slice(head * width, (head + 1) * width)
            if name == "llama":
                cut.model.layers[0].self_attn.o_proj.weight[:, part] = 0
            elif name == "gpt2":
                cut.transformer.h[0].attn.c_proj.weight[part] = 0
            elif name == "t5":
                cut.decoder.block[0].layer[0].SelfAttention.o.weight[:, part] = 0
            else:
                cut.model.decoder.layers[0].self_attn.out_proj.weight[:, part] = 0
    ours, prompt = TransformersModel(model), [7, 8, 9]
    rows = ours.start([prompt, prompt], Needs(masked_heads=heads))
    rows.extend([[20], [21, 22]])
    for number, added in enumerate(([20], [21, 22])):
        expected = plain(cut, added, prompt) if ours.can.encoder else plain(cut, [*prompt, *added])
        assert torch.allclose(rows.last.logits[number], expected, atol=SINGLE, rtol=SINGLE)
    # Ten times what rounding may do.
    assert not torch.allclose(rows.last.logits[0], next_logits(ours, [[20]], [prompt])[0], atol=1e-2)
    with pytest.raises(GuidedError, match="no attention head"):
        ours.start([prompt], Needs(masked_heads=((0, 9),)))


def test_heads_masked_beyond_the_prompt_only(llama):
    ours, heads = TransformersModel(llama), ((0, 0), (1, 2))
    rows = ours.start([[7, 8, 9]], Needs(masked_heads=heads, masked_prompt=False))
    assert torch.allclose(rows.last.logits, ours.start([[7, 8, 9]]).last.logits, atol=SINGLE)
    rows.extend([[20]])
    # The same by hand: a cache read whole, one more token without the heads.
    inside = ours.start([[7, 8, 9, 20]]).last.logits
    masked = ours.start([[7, 8, 9, 20]], Needs(masked_heads=heads)).last.logits
    # Ten times what rounding may do.
    assert not torch.allclose(rows.last.logits, inside, atol=1e-2)
    # As above.
    assert not torch.allclose(rows.last.logits, masked, atol=1e-2)

    def without(head):
        def hook(module, args):
            return (torch.cat([args[0][..., : head * 8], 0 * args[0][..., :8], args[0][..., head * 8 + 8 :]], -1),)

        return hook

    with torch.no_grad():
        past = llama(input_ids=torch.tensor([[7, 8, 9]]), use_cache=True).past_key_values
        hooks = [
            llama.model.layers[block].self_attn.o_proj.register_forward_pre_hook(without(head)) for block, head in heads
        ]
        try:
            expected = llama(input_ids=torch.tensor([[20]]), past_key_values=past).logits[0, -1]
        finally:
            for hook in hooks:
                hook.remove()
    assert torch.allclose(rows.last.logits[0], expected, atol=SINGLE)


# What is computed, and what is moved.


def spent(model, work):
    before = copy.copy(model.calls)
    work()
    after = model.calls
    return after.passes - before.passes, after.positions - before.positions, after.moved - before.moved


def test_a_prompt_is_computed_once_and_expanded(small):
    prompt = list(range(4, 44))
    rows = []
    assert spent(small, lambda: rows.append(small.start([prompt] * 64))) == (1, 40, 0)
    assert spent(small, lambda: rows[0].extend([[token] for token in range(4, 68)])) == (1, 64, 63)
    assert spent(small, lambda: rows[0].extend([[5]] * 64)) == (1, 64, 0)


def test_equal_prefixes_are_computed_once(small):
    rows = small.start([[5, 6, 7]] * 64)
    passes, positions, moved = spent(small, lambda: rows.extend([[8 + number % 4] for number in range(64)]))
    assert (passes, positions, moved) == (1, 4, 3)
    assert spent(small, lambda: rows.extend([[9]] * 64)) == (1, 4, 0)


def test_resampling_moves_only_rows_whose_ancestor_changed(small):
    rows = small.start([[5, 6, 7]] * 16)
    rows.extend([[8 + number] for number in range(16)])
    ancestors = list(range(16))
    ancestors[3], ancestors[9] = 4, 4
    assert spent(small, lambda: rows.select(ancestors)) == (0, 0, 0)
    # Rows 3, 4 and 9 are one prefix until they differ; then two copies go to where 3 and 9 were.
    assert spent(small, lambda: rows.extend([[30]] * 16)) == (1, 14, 2)
    assert spent(small, lambda: rows.extend([[30 + number] for number in range(16)])) == (1, 16, 2)
    assert rows.tokens(9) == (5, 6, 7, 12, 30, 39)


def test_finished_rows_leave_the_batch(small):
    rows = small.start([[5, 6, 7]] * 8)
    rows.extend([[8 + number] for number in range(8)])
    assert spent(small, lambda: rows.extend([[9]] * 7 + [[]]))[:2] == (1, 7)
    ended = [[], [9], [9], [], [9], [9], [9], []]
    passes, positions, moved = spent(small, lambda: rows.extend(ended))
    assert (passes, positions) == (1, 5) and moved <= 4
    # From then on nothing moves any more.
    assert spent(small, lambda: rows.extend(ended)) == (1, 5, 0)
    expected = [plain(small.model, rows.tokens(number)) for number in range(8)]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES)


def test_rolled_back_rows_cost_nothing_until_scores_are_asked_for(small):
    rows = small.start([list(range(4, 24))])
    rows.extend([[30, 31, 32, 33]])
    assert spent(small, lambda: rows.crop([22])) == (0, 0, 0)
    assert spent(small, lambda: rows.last) == (0, 0, 0)  # known from the last pass
    rows.extend([[35]])
    rows.crop([21])
    assert spent(small, lambda: rows.last) == (1, 1, 0)


def test_prompts_that_begin_alike_share_a_pass(small):
    system = list(range(4, 64))
    prompts = [[*system, 70 + number] for number in range(8)]
    rows = []
    assert spent(small, lambda: rows.append(small.start(prompts)))[:2] == (2, 68)
    late = [*system, 70, 80]
    assert spent(small, lambda: rows[0].join([late, prompts[3]]))[:2] == (1, 1)
    expected = [plain(small.model, tokens) for tokens in (*prompts, late, prompts[3])]
    assert torch.allclose(rows[0].last.logits, torch.stack(expected), atol=PASSES)
    few = [[4, 5, 70], [4, 5, 71]]
    assert spent(small, lambda: small.start(few))[:2] == (1, 6)  # not worth a pass


def test_long_prompts_are_read_in_pieces(small, monkeypatch):
    monkeypatch.setattr("guided.hf.cache.sequences.PASS_POSITIONS", 16)
    prompts = [[4 + (number * at) % 80 for at in range(1, length)] for number, length in ((1, 50), (2, 30), (3, 3))]
    rows = small.start(prompts)
    expected = [plain(small.model, prompt) for prompt in prompts]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES)
    scores = rows.extend([[5, 6, 7, 8, 9, 10, 11], [5], []])
    assert [len(found) for found in scores] == [7, 1, 0]
    assert torch.allclose(scores[0].logits[5], plain(small.model, [*prompts[0], 5, 6, 7, 8, 9, 10]), atol=PASSES)


def test_the_head_reads_asked_positions_only(small):
    seen = []
    head = small.model.lm_head
    hook = head.register_forward_hook(lambda module, args, output: seen.append(output.shape[:-1].numel()))
    try:
        rows = small.start([list(range(4, 80)), [5, 6]])
        rows.extend([[7, 8], [9]])
    finally:
        hook.remove()
    assert seen == [2, 3]


def test_trees_keep_paths_apart(small):
    """Equal rows that keep different paths of the same tree, and one that keeps none."""
    rows = small.start([[5, 6, 7]] * 4)
    tree = Tree((10, 11, 12, 13, 14), (-1, 0, -1, 2, 3))
    assert spent(small, lambda: rows.extend_tree([tree] * 4)) == (1, 5, 0)
    rows.keep([(0, 1), (2, 3, 4), (), (2,)])
    assert [rows.tokens(number)[3:] for number in range(4)] == [(10, 11), (12, 13, 14), (), (12,)]
    rows.extend([[20], [21], [22], [23]])
    expected = [plain(small.model, rows.tokens(number)) for number in range(4)]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES)


def test_encoders_run_once_a_prompt(t5):
    ours = TransformersModel(t5)
    rows = ours.start([[7, 8, 9]] * 16)
    before = copy.copy(ours.calls)
    rows.join([[7, 8, 9], [7, 8, 10]])
    # The known prompt is a fork and one start token, the new one an encoder's pass and one start token.
    assert ours.calls.passes - before.passes <= 3 and ours.calls.positions - before.positions <= 5
    with pytest.raises(GuidedError, match="cropped"):
        rows.crop([2, *[3] * 17])


@pytest.mark.skipif(not KEEPS_STATES, reason="this release of transformers keeps states another way")
def test_states_are_continued_and_copied():
    model = TransformersModel(build("mamba"))
    assert not model.can.crop
    rows = model.start([[5, 6, 7, 8]] * 8)
    assert spent(model, lambda: rows.extend([[9 + number] for number in range(8)])) == (1, 8, 7)
    assert spent(model, lambda: rows.extend([[20]] * 6 + [[], []]))[:2] == (1, 6)
    rows.select([0, 0, 1, 6])
    assert spent(model, lambda: rows.extend([[30], [31], [32], []]))[:2] == (1, 3)
    # A row that was rolled back is read again, the others are not.
    rows.crop([7, 5, 7, 5])
    assert spent(model, lambda: rows.extend([[40], [41], [42], [43]]))[1] <= 1 + 6 + 1 + 1
    expected = [plain(model.model, rows.tokens(number)) for number in range(4)]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES, rtol=PASSES)


def test_no_rows_at_all(small):
    rows = small.start([])
    assert len(rows.last) == 0 and len(rows.extend([])) == 0
    rows.join([[5, 6]])
    rows.select([])
    assert len(rows) == 0 and len(rows.last) == 0
    rows.join([[5, 6], [7]])
    assert torch.allclose(rows.last.logits[1], plain(small.model, [7]), atol=PASSES)


# Refusals and several threads.


def test_refusals(llama, t5):
    with pytest.raises(GuidedError, match="empty"):
        TransformersModel(llama).start([[1], []])
    with pytest.raises(UnsupportedError, match="tree"):
        TransformersModel(t5).start([[1]]).extend_tree([Tree((1,), (-1,))])
    with pytest.raises(UnsupportedError, match="head"):
        TransformersModel(llama.model)
    training = copy.deepcopy(llama).train()
    with pytest.raises(GuidedError, match="eval"):
        TransformersModel(training).start([[1]])
    bare = copy.deepcopy(t5)
    bare.config.decoder_start_token_id = bare.generation_config.decoder_start_token_id = None
    bare.config.bos_token_id = bare.generation_config.bos_token_id = None
    with pytest.raises(GuidedError, match="decoder_start"):
        TransformersModel(bare)
    assert TransformersModel(bare, decoder_start=[0]).start([[5]]).last.logits.shape == (1, 352)


@pytest.mark.parametrize("caching", [None, Caching.NONE])
def test_more_tokens_than_positions(caching):
    model = TransformersModel(build("opt"), caching=caching)
    rows = model.start([[5] * 254, [6, 7]])
    rows.extend([[7, 8], [7]])
    with pytest.raises(LimitError, match="256 tokens"):
        rows.extend([[9], [9]])
    # What failed left the rows as they were.
    rows.crop([255, 3])
    rows.extend([[8], [10]])
    expected = [plain(model.model, rows.tokens(number)) for number in range(2)]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES)


def test_a_pass_that_fails_leaves_the_rows_as_they_were(small):
    rows = small.start([[5, 6, 7], [5, 6, 8]])
    rows.extend([[9, 10, 11], [9]])
    rows.crop([4, 4])
    hook = small.model.model.layers[1].register_forward_pre_hook(lambda *_: 1 / 0)
    try:
        with pytest.raises(ZeroDivisionError):
            rows.extend([[12], [13]])
    finally:
        hook.remove()
    assert rows.tokens(0) == (5, 6, 7, 9)
    rows.join([[5, 6, 7, 9, 10, 11]])  # whose keys and values the failed pass has spoilt
    rows.extend([[14], [15], []])
    expected = [plain(small.model, rows.tokens(number)) for number in range(3)]
    assert torch.allclose(rows.last.logits, torch.stack(expected), atol=PASSES)


def test_ends_of_text(llama, tokenizer):
    assert TransformersModel(llama).eos_ids == {2}
    assert TransformersModel(llama, tokenizer).eos_ids == {tokenizer.eos_token_id}
    assert TransformersModel(llama, eos_ids=[5, 6]).eos_ids == {5, 6}


def test_threads_share_a_model(small):
    """Hooks are on the module: passes of several threads must not see each other's."""
    failures = []

    def work(number):
        try:
            needs = Needs(masked_heads=((0, number),)) if number else Needs(layers=(1,))
            expected = small.start([[5, 6, number + 7]], needs).last.logits
            for _ in range(10):
                rows = small.start([[5, 6, number + 7]], needs)
                assert torch.allclose(rows.last.logits, expected, atol=SINGLE)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures

"""The logits processor over a stand-in of vLLM's: a request's rows, and what is refused before it runs."""

import importlib
from types import SimpleNamespace

import pytest
import torch

import guided
from guided.hf.steering import SteeringLogitsProcessor
from guided.lm import TableModel
from guided.steer import ClassifierFree, Contrastive, EntropyAdaptive, Stack
from tests.unit.serving.vllm import stand_ins
from tests.unit.serving.vllm.stand_ins import SamplingParams, put_in

AMATEUR = TableModel(lambda tokens: torch.arange(6.0) * (len(tokens) % 3), width=6, eos_ids=[5])


@pytest.fixture
def processor(monkeypatch):
    put_in(monkeypatch)
    base = importlib.import_module("guided.serving.vllm.steering").SteeringProcessor

    class Steered(base):
        @classmethod
        def steerers(cls, argument):
            if argument == "amateur":
                return Contrastive(AMATEUR)
            if argument == "own":
                return [ClassifierFree()]
            raise guided.GuidedError("there is no such steering", where=argument, remedy="Ask for amateur.")

    config = SimpleNamespace(get_vocab_size=lambda: 6, hf_config=SimpleNamespace(eos_token_id=5))
    made = Steered(SimpleNamespace(model_config=config), torch.device("cpu"), False)
    made.config = SimpleNamespace(model_config=config)
    return made


def asking(argument):
    return SamplingParams(extra_args=None if argument is None else {"guided_steer": argument})


def test_rows_are_those_of_our_own_processor(processor):
    steered = processor.new_req_logits_processor(asking("amateur"))
    prompt, output, scores = [1, 2], [], torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    twin = SteeringLogitsProcessor(Contrastive(AMATEUR), processor.model, prompt_length=2, pad_token_id=-1)
    for token, row in enumerate(scores):
        expected = twin(torch.tensor([[*prompt, *output]]), row[None, :6].clone())[0]
        given = row.clone()
        found = steered(prompt, output, given)
        assert torch.equal(found[:6], expected) and torch.equal(found[6:], row[6:])
        output.append(token)


def test_rows_of_slots_are_those_of_their_texts(processor):
    """Two requests in the V2 runner, one with two tokens drafted, and one that does not ask between them."""
    ids = torch.tensor([[1, 2, 3, -1], [4, 4, -1, -1], [2, -1, -1, -1]])
    state = stand_ins.LogitsProcRequestState(SimpleNamespace(gpu=ids), SimpleNamespace(np=[2, 2, 1]))
    slots = type(processor)(processor.config, state)
    assert [slots.add_request(slot, asking(each)) for slot, each in enumerate(["amateur", None, "amateur"])] == [
        1,
        0,
        1,
    ]
    scores = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    rows = [(2, 0, 0, 2), (1, 1, 0, 4), (0, 2, 0, 3), (0, 3, 1, 0), (0, 4, 2, 4)]
    slot, position, drafted, fed = (torch.tensor(column) for column in zip(*rows, strict=True))
    context = SimpleNamespace(
        expanded_idx_mapping=slot, pos=position, expanded_local_pos=drafted, input_ids=fed, idx_mapping_np=slot.numpy()
    )
    found = slots.apply(scores.clone(), context)
    texts = [([2], []), None, ([1, 2], [3]), ([1, 2], [3, 0]), ([1, 2], [3, 0, 4])]
    for row, given, text in zip(found, scores, texts, strict=True):
        alone = given if text is None else processor.new_req_logits_processor(asking("amateur"))(*text, given.clone())
        assert torch.equal(row, alone)
    slots.add_request(0, asking(None))
    slots.add_request(2, asking(None))
    assert torch.equal(slots.apply(scores.clone(), context), scores)


def test_who_does_not_ask_is_not_steered(processor):
    assert processor.new_req_logits_processor(asking(None)) is None
    assert not processor.is_argmax_invariant()
    processor.validate_params(asking(None))
    processor.validate_params(asking("amateur"))


@pytest.mark.parametrize(("argument", "message"), [
    ("own", "ClassifierFree asks the served model"),
    ("other", r"no such steering \(at other\)\. Ask for amateur"),
])  # fmt: skip
def test_what_cannot_be_served_is_refused(processor, argument, message):
    with pytest.raises(stand_ins.VLLMValidationError, match=message) as caught:
        processor.validate_params(asking(argument))
    assert caught.value.parameter == "extra_args.guided_steer"
    with pytest.raises(guided.UnsupportedError, match="about another prompt"):
        processor.model.start([[1]])


def test_adaptive_stacks_are_refused(processor, monkeypatch):
    stack = Stack([EntropyAdaptive(AMATEUR, 1.0)])
    monkeypatch.setattr(type(processor), "steerers", classmethod(lambda cls, argument: stack))
    with pytest.raises(stand_ins.VLLMValidationError, match="EntropyAdaptive"):
        processor.validate_params(asking("x"))

"""Models by folder and name: what loads, and one clear error for each thing that can be missing or broken."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, ViTConfig, ViTModel

from guided.errors import GuidedError, UnsupportedError
from guided.hf import Stage, load
from guided.hf.denoisers import denoiser_for
from tests.tolerances import SINGLE

SMALL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.fixture
def folder(tmp_path, llama, tokenizer):
    llama.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def test_a_folder_loads(folder, llama, tokenizer):
    stages: list[Stage] = []
    loaded = load(folder, on_stage=stages.append, device="cpu")
    assert stages == list(Stage)
    assert loaded.model.dtype is torch.float32
    assert not loaded.model.training
    assert loaded.vocabulary.size == len(tokenizer)
    ids = torch.tensor([[1, 70, 71]])
    with torch.no_grad():
        assert torch.allclose(loaded.model(ids).logits.double(), llama(ids).logits, atol=SINGLE, rtol=SINGLE)


def test_packaged_models_load_without_a_word(folder, capsys):
    logging = transformers.utils.logging
    was_on = logging.is_progress_bar_enabled()
    logging.enable_progress_bar()
    try:
        load(folder, device="cpu")
        assert "Loading weights" in capsys.readouterr().err
        for name in ("nano", "reviews"):
            load(name, device="cpu")
            assert capsys.readouterr() == ("", "")
        assert logging.is_progress_bar_enabled()
    finally:
        if not was_on:
            logging.disable_progress_bar()


def test_a_type_of_ones_own(folder):
    assert load(str(folder), dtype=torch.bfloat16, device="cpu").model.dtype is torch.bfloat16


def test_encoder_decoder_models_load(tmp_path, t5, tokenizer):
    t5.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load(tmp_path).model.config.is_encoder_decoder


def refused(match: str, name, **options) -> str:
    with pytest.raises(GuidedError, match=match) as caught:
        load(name, **{"local_files_only": True, **options})
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_not_there(tmp_path):
    refused("no such folder", "./nowhere")
    refused("no such folder", tmp_path / "nowhere")
    refused("no such folder", "a/b/c")
    refused("holds no model", tmp_path)
    (tmp_path / "file").write_text("")
    refused("is a file", tmp_path / "file")
    refused("cannot load the configuration of 'no-such/model'", "no-such/model")


def test_a_model_without_a_tokenizer(folder):
    for file in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / file).unlink(missing_ok=True)
    refused("has no tokenizer", folder)


def test_broken_files(folder):
    (folder / "tokenizer.json").write_text("{")
    refused("tokenizer", folder)
    (folder / "model.safetensors").write_bytes(b"junk" * 50)
    refused("tokenizer", folder)
    (folder / "config.json").write_text('{"model_type":')
    refused("cannot load the configuration", folder)


def test_broken_weights(folder):
    (folder / "model.safetensors").write_bytes(b"junk" * 50)
    refused("cannot load the weights", folder)
    (folder / "model.safetensors").unlink()
    refused("cannot load the weights", folder)


def test_models_that_do_not_write(folder, tmp_path_factory, tokenizer, llama):
    place = tmp_path_factory.mktemp("other")
    ViTModel(ViTConfig(**SMALL)).save_pretrained(place)
    tokenizer.save_pretrained(place)
    refused("no causal or encoder-decoder language model", place)
    place = tmp_path_factory.mktemp("headless")
    llama.model.save_pretrained(place)
    tokenizer.save_pretrained(place)
    refused("no weights for lm_head", place)


def test_a_masked_model_is_loaded_and_needs_a_mask_token(tmp_path, tokenizer):
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer) + 1, **SMALL)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UnsupportedError, match="no mask token"):
        denoiser_for(load(tmp_path))
    masking = AutoTokenizer.from_pretrained(tmp_path)
    masking.add_special_tokens({"mask_token": "<mask>"})
    masking.save_pretrained(tmp_path)
    denoiser = denoiser_for(load(tmp_path))
    assert denoiser.mask_id == len(tokenizer) and denoiser.eos_ids == {tokenizer.eos_token_id}


def test_an_unknown_architecture(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "quantum"}))
    refused("cannot load the configuration", folder)


def test_a_device_that_is_not_there(folder):
    refused("cannot use the device 'warp'", folder, device="warp")


class TestTheHub:
    """What the hub answers, without a hub."""

    @pytest.fixture
    def answer(self, monkeypatch):
        def install(error: Exception) -> None:
            def model_info(self, name, **_):
                raise error

            monkeypatch.setattr("guided.hf.loading.HfApi.model_info", model_info)

        return install

    def test_no_such_model(self, answer):
        from huggingface_hub.errors import RepositoryNotFoundError

        class Missing(RepositoryNotFoundError):
            def __init__(self):
                Exception.__init__(self, "404")

        answer(Missing())
        refused("there is no model 'no-such/model'", "no-such/model", local_files_only=False)

    def test_no_connection_tries_the_cache_only(self, answer):
        answer(ConnectionError("no route"))
        refused("cannot load the configuration of 'no-such/model'", "no-such/model", local_files_only=False)

    def test_an_impossible_name(self, answer):
        from huggingface_hub.errors import HFValidationError

        answer(HFValidationError("not a name"))
        refused("there is no model 'so--long'", "so--long", local_files_only=False)

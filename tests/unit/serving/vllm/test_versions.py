"""Which releases of vLLM are touched, and what is said of the others."""

import logging

import pytest

import guided.serving.vllm as plug_in
from guided.serving.vllm.versions import is_supported, warn_unsupported
from tests.unit.serving.vllm.stand_ins import put_in


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0", "0.33.2rc1", "0.32.0+cpu", "0.33"])
def test_known_releases(version):
    assert is_supported(version)


@pytest.mark.parametrize("version", ["0.31.9", "0.34.0", "0.3.3", "0.330.0", "1.0.0", "dev", ""])
def test_other_releases(version):
    assert not is_supported(version)


def test_another_release_is_left_alone_with_one_warning(monkeypatch, caplog):
    vllm = put_in(monkeypatch, "0.40.1")
    before = vllm.SamplingParams._validate_structured_outputs
    with caplog.at_level(logging.WARNING, "vllm.guided"):
        plug_in.widen()
        plug_in.register()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "this is vLLM 0.40.1, and guided's backend is written for 0.32 and 0.33" in caplog.text
    assert vllm.SamplingParams._validate_structured_outputs is before
    with pytest.raises(ValueError):
        vllm.Config(backend="guided")


def test_what_is_said_says_what_to_do(caplog):
    with caplog.at_level(logging.WARNING, "vllm.guided"):
        warn_unsupported("0.31.0")
    assert "Install one of these releases, or a guided that knows yours." in caplog.text

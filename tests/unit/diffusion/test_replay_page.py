"""The page of how a canvas filled: its data is what the run did, and no text of a model ends its script."""

from __future__ import annotations

import json

import numpy as np

from guided.diffusion import Denoising, Job, LowConfidence, TableDenoiser, denoise
from guided.diffusion.replay_page import replay_page

PIECES = ["</script><b>", "é\u2028"]


def test_the_page_holds_the_run_and_nothing_escapes():
    denoiser = TableDenoiser(np.random.default_rng(1).random((2, 2, 2)))
    (text,) = denoise(denoiser, [Job((), 3)], Denoising(LowConfidence(2)))
    page = replay_page(text, PIECES.__getitem__, "<i>title")
    assert page.count("</script>") == 1 and "<b>" not in page and "<i>" not in page
    assert "http" not in page
    start = page.index("const data = ") + len("const data = ")
    data, _ = json.JSONDecoder().raw_decode(page[start:])
    assert data["final"] == [PIECES[token] for token in text.tokens] and data["title"] == "<i>title"
    assert [step["committed"] for step in data["steps"]] == [
        np.flatnonzero(frame.committed).tolist() for frame in text.frames
    ]
    assert sorted(place for step in data["steps"] for place in step["committed"]) == [0, 1, 2]

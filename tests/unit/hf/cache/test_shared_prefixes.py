"""The order in which shared beginnings of prompts are computed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guided.hf.cache.shared_prefixes import WORTH_A_PASS, Segment, waves


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=1, max_size=7), st.integers(1, 40))
def test_waves_put_every_prompt_together_again(ends, shared):
    # Every other prompt begins with a long run, so that some sharing pays and some does not.
    prompts = list(dict.fromkeys(tuple([7] * (shared if n % 2 else 1) + end) for n, end in enumerate(ends)))
    segments = [Segment(prompt, 0, prompt) for prompt in prompts]
    seen, computed = [], 0
    for wave in waves(segments):
        for segment in wave:
            assert segment.parent is None or segment.parent in seen
            assert len(segment.tokens) >= 1
            computed += len(segment.tokens)
        seen += wave
    assert {segment.item for segment in seen if segment.item is not None} == set(prompts)
    for segment in segments:
        whole, above = list(segment.tokens), segment.parent
        while above is not None:
            whole, above = [*above.tokens, *whole], above.parent
        assert tuple(whole) == segment.item
    n_shared = sum(segment.item is None for segment in seen)
    assert computed <= sum(map(len, prompts)) - WORTH_A_PASS * n_shared


def test_segments_with_other_starts_share_nothing():
    one, two = Segment([1] * 50, "a", 1), Segment([1] * 50, "b", 2)
    assert [len(wave) for wave in waves([one, two])] == [2]

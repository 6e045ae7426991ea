"""The published decoders against brute forces of their own rules, on languages that can be listed."""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np
import pytest

import guided
from guided.diffusion import Canvas, Denoising, FixedBlocks, Job, LowConfidence, Noise, denoise
from guided.diffusion.baselines import Gaps, Intersection, JointCommits, Lookahead
from guided.errors import LimitError, UnsupportedError
from tests.amounts import each, some
from tests.tolerances import DOUBLE

TOKENS = [b"a", b"b", b"ab", b"(", b")", b"()", None, None]
END, MASK = 6, 7
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[END])
LANGUAGES = {
    "(a|b)*ab": r"(a|b)*ab",
    "pairs": r"(\(\)|a)(\(\)|b)*",
    "few": r"ab|\(a\)|\(\(b\)\)|a\(\)b",
    "even": r"((a|b)(a|b))*|\(\)",
}
MOST = 8
"""Bytes of the listed texts: patterns without a gap have at most 8 here, others fewer, and two more bytes end any text."""


class Stubborn:
    """A masked denoiser whose scores know nothing of any grammar."""

    noise, block, pad_id, window, longest = Noise.MASKED, None, None, None, None
    width, mask_id, eos_ids = len(TOKENS), MASK, frozenset({END})

    def scores(self, canvases):
        found = np.zeros((len(canvases), len(canvases[0]), self.width), np.float32)
        for row, canvas in enumerate(canvases):
            key = hash((canvas.prompt, tuple(canvas.tokens.tolist()))) % 2**32
            found[row] = np.random.default_rng(key).normal(size=found[row].shape) * 3
        found[..., MASK] = -np.inf
        return found


def constraint(name):
    return guided.compile(guided.regex(LANGUAGES[name]), VOCABULARY)


@cache
def listed(name):
    wanted = re.compile(LANGUAGES[name])
    texts = ("".join(text) for n in range(MOST + 1) for text in itertools.product("ab()", repeat=n))
    return [text for text in texts if wanted.fullmatch(text)]


def pattern_text(pattern):
    """The regular expression of a canvas with gaps of any length."""
    parts = []
    for token in pattern:
        if token == END:
            return "".join(parts)
        parts.append(".*" if token is None else re.escape(TOKENS[token].decode()))
    return "".join([*parts, ".*"])


def fits(texts, pattern):
    wanted = re.compile(pattern_text(pattern))
    return any(wanted.fullmatch(text) for text in texts)


def random_pattern(rng):
    pattern = [None if rng.random() < 0.5 else int(rng.integers(0, 6)) for _ in range(rng.integers(1, 5))]
    return [*pattern, END] if rng.random() < 0.4 else pattern


@pytest.mark.parametrize("name", LANGUAGES)
def test_gaps_of_any_length_by_enumeration(name):
    rng, gaps, texts = np.random.default_rng(1), Gaps(constraint(name)), listed(name)
    answers = []
    for _ in range(some(400)):
        pattern = random_pattern(rng)
        answers.append(gaps.fits(pattern))
        assert answers[-1] == fits(texts, pattern), pattern
        found = gaps.shortest(pattern)
        assert (found is not None) == answers[-1]
        if found is not None:
            text = "".join(TOKENS[token].decode() for token in found)
            assert re.fullmatch(LANGUAGES[name], text) and re.fullmatch(pattern_text(pattern), text)
    assert 0 < sum(answers) < len(answers)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_heaviest_tokens_that_fit_together_by_enumeration(name):
    rng, gaps, texts = np.random.default_rng(2), Gaps(constraint(name)), listed(name)
    for _ in range(some(100)):
        pattern = random_pattern(rng)
        if not gaps.fits(pattern):
            continue
        empty = [place for place, token in enumerate(pattern) if token is None]
        candidates = {place: (int(rng.integers(0, 7)), float(rng.random()) + 0.01) for place in empty}

        def weight(chosen, pattern=pattern, candidates=candidates):
            tried = list(pattern)
            for place in chosen:
                tried[place] = candidates[place][0]
            # Behind an end nothing counts, so no candidate there is committed.
            early = any(candidates[place][0] == END for place in chosen[:-1])
            return -1 if early or not fits(texts, tried) else sum(candidates[place][1] for place in chosen)

        subsets = [each for n in range(len(empty) + 1) for each in itertools.combinations(empty, n)]
        found = gaps.heaviest(pattern, candidates)
        assert weight(found) == pytest.approx(max(map(weight, subsets)), abs=DOUBLE)


def by_the_published_loop(name, prompt, length, steps, resamples, texts):
    """Mündler et al.'s loop over one block, by lists: the text's tokens, and whether it ended whole."""
    tokens, refused = [MASK] * length, 0
    for step in range(steps):
        if END in tokens and MASK not in tokens[: tokens.index(END)]:
            break
        known = [token != MASK for token in tokens]
        scores = Stubborn().scores([Canvas(tokens, known, prompt)])[0].astype(float)
        law = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        left = law.copy()
        for _ in range(-(-tokens.count(MASK) // (steps - step))):
            while True:
                if MASK not in tokens or (END in tokens and MASK not in tokens[: tokens.index(END)]):
                    break
                sure = [left[i].max() if tokens[i] == MASK else -1 for i in range(length)]
                place = int(np.argmax(sure))
                if sure[place] <= 0 or refused >= resamples:
                    return [token for token in tokens[: (*tokens, END).index(END)] if token != MASK], False
                token = int(left[place].argmax())
                tried = [None if t == MASK else t for t in tokens]
                tried[place] = token
                if fits(texts, tried):
                    tokens[place:] = [END] * (length - place) if token == END else [token, *tokens[place + 1 :]]
                    break
                left[place, token] = -1
                refused += 1
    return tokens[: (*tokens, END).index(END)], END in tokens


@pytest.mark.parametrize("resamples", [3, 100])
@pytest.mark.parametrize("name", each(LANGUAGES, 2))
def test_intersection_is_the_published_loop(name, resamples):
    of, texts, ended = constraint(name), listed(name), []
    for n in range(some(48)):
        length, steps = 2 + n % 2, 1 + n % 3
        expected, whole = by_the_published_loop(name, (n,), length, steps, resamples, texts)
        for completes in (False, True):
            law = Intersection(of, resamples=resamples, completes=completes)
            (made,) = denoise(Stubborn(), [Job((n,), length, law)], Denoising(LowConfidence(steps)))
            if whole or not completes:
                assert list(made.text) == expected
            else:
                text = b"".join(TOKENS[token] for token in made.text).decode()
                assert re.fullmatch(LANGUAGES[name], text), "what is given up is completed"
        ended.append(whole)
    assert not all(ended) and (resamples == 3 or any(ended))


@pytest.mark.parametrize("law", [JointCommits, Intersection])
def test_what_is_given_up_is_what_is_known_unless_completed(law):
    found = [
        denoise(Stubborn(), [Job((n,), 3, law(constraint("few"), resamples=0, completes=False))])[0] for n in range(9)
    ]
    assert any(made.n_text < 3 for made in found)


@pytest.mark.parametrize("name", LANGUAGES)
def test_joint_commits_fit_together_in_every_step(name):
    law, texts = JointCommits(constraint(name)), listed(name)
    for n in range(12):
        (made,) = denoise(Stubborn(), [Job((n,), 3, law)], Denoising(LowConfidence(2)))
        assert re.fullmatch(LANGUAGES[name], b"".join(TOKENS[token] for token in made.text).decode())
        held = [None] * 3
        for frame in made.frames:
            for place in np.flatnonzero(frame.committed).tolist():
                held[place] = int(frame.proposed[place])
            assert fits(texts, held)


@pytest.mark.parametrize("name", LANGUAGES)
def test_lookahead_with_all_beams_is_whether_a_filling_parses(name):
    rng, of = np.random.default_rng(3), constraint(name)
    law = Lookahead(of, tokens=6, beams=6**4, others=0)
    prefixes = {text[:n] for text in listed(name) for n in range(len(text) + 1)}
    answers = []
    for _ in range(some(160)):
        row = [-1 if token is None else token for token in random_pattern(rng)]
        probabilities = rng.random((len(row), 8))
        probabilities[:, 6:] = 0
        text = row[: row.index(END)] if END in row else row
        known = [place for place, token in enumerate(text) if token != -1]
        last = known[-1] if known else -1
        fillings = itertools.product(*(range(6) if token == -1 else [token] for token in text[: last + 1]))
        texts = [b"".join(TOKENS[token] for token in filling).decode() for filling in fillings]
        parses = any(text in prefixes for text in texts if len(text) <= MOST - 2)
        found = law.looked_ahead((), list(row), 0, len(row), probabilities, rng)
        if END not in row:
            answers.append(bool(found))
            assert answers[-1] == parses or any(len(text) > MOST - 2 for text in texts)
        elif found:
            written = found[: found.index(END)]
            assert re.fullmatch(LANGUAGES[name], b"".join(TOKENS[token] for token in written).decode())
        if found:
            assert all(token in (-1, found[place]) for place, token in enumerate(row[: last + 1]))
    assert any(answers) and not all(answers)


@pytest.mark.parametrize("how", each([
    Denoising(LowConfidence(1)), Denoising(LowConfidence(3)), Denoising(LowConfidence(2), FixedBlocks(3)),
    Denoising(LowConfidence(2), FixedBlocks(3), joined=True),
], 2))  # fmt: skip
@pytest.mark.parametrize("name", LANGUAGES)
def test_lookahead_ends_and_what_it_ends_is_of_the_language(name, how):
    law, whole = Lookahead(constraint(name)), 0
    jobs = [Job((n,), 4 + n % 6, law) for n in range(some(40))]
    for made, job in zip(denoise(Stubborn(), jobs, how, 0), jobs, strict=True):
        text = b"".join(TOKENS[token] for token in made.text).decode()
        of = law.constraint
        assert of.advance_bytes(of.start, text.encode()), "what it writes begins a text"
        if made.n_text < job.length:
            whole += 1
            assert re.fullmatch(LANGUAGES[name], text)
    assert whole


def test_bounds_and_refusals():
    nested = guided.compile(guided.gbnf('root ::= "(" root ")" | "a"'), VOCABULARY)
    with pytest.raises(LimitError, match="a gap reaches more than 50 states"):
        Gaps(nested, 50).fits([None, 0])
    with pytest.raises(UnsupportedError, match="Intersection decides itself what a step commits"):
        denoise(Stubborn(), [Job((), 3, Intersection(nested))], Denoising(drafts=2))

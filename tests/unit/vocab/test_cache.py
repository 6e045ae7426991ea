"""The cache on disk: hits, misses, damage, strangers, several processes, places that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from guided.kernels.jit import JUST_IN_TIME
from guided.vocab import Vocabulary
from guided.vocab import cache as cache_module
from guided.vocab.cache import Entry, cache_directory, load, store

KEY = "0123456789abcdef"


def sample() -> Entry:
    arrays: dict[str, Any] = {
        "bytes": np.arange(256, dtype=np.uint8),
        "none": np.zeros(0, np.int32),
        "ints": np.array([1, -2, 3], np.int32),
        "big": np.array([1, 2**40], ">i8"),
    }
    return Entry(facts={"n": 3, "name": "é", "list": [1, 2]}, arrays=arrays)


def assert_is_sample(entry: Entry | None) -> None:
    assert entry is not None
    assert entry.facts == sample().facts
    assert list(entry.arrays) == list(sample().arrays)
    for name, array in sample().arrays.items():
        assert entry.arrays[name].tolist() == array.tolist()
        assert entry.arrays[name].dtype == array.dtype.newbyteorder("=")
        assert not entry.arrays[name].flags.writeable


def forget() -> None:
    """Drop the vocabularies that this process still knows by content."""
    import gc

    gc.collect()


def test_store_and_load() -> None:
    assert load("kind", KEY) is None
    assert store("kind", KEY, sample())
    assert_is_sample(load("kind", KEY))
    assert load("kind", KEY[::-1]) is None
    assert load("other", KEY) is None


def test_last_writer_stays_and_nothing_else(cache_folder: Path) -> None:
    for _ in range(3):
        assert store("kind", KEY, sample())
    assert [path.name for path in (cache_folder / "kind").iterdir()] == [f"{KEY}.bin"]


def damage_every_byte(content: bytes) -> list[bytes]:
    return [content[:i] + bytes([content[i] ^ 0x40]) + content[i + 1 :] for i in range(len(content))]


def test_damage_anywhere_reads_as_absent(cache_folder: Path) -> None:
    store("kind", KEY, sample())
    path = cache_folder / "kind" / f"{KEY}.bin"
    content = path.read_bytes()
    cut = [content[:length] for length in range(0, len(content), 7)]
    strangers = [b"", b"PK\x03\x04", b"\0" * 500, content + b"x", content[1:], content.replace(b"cache 1", b"cache 2")]
    for altered in [*damage_every_byte(content), *cut, *strangers]:
        path.write_bytes(altered)
        assert load("kind", KEY) is None
    path.write_bytes(content)
    assert_is_sample(load("kind", KEY))


def test_header_of_a_stranger_with_a_right_checksum(cache_folder: Path) -> None:
    import zlib

    folder = cache_folder / "kind"
    folder.mkdir(parents=True)
    for header in (
        b"[]",
        b"{}",
        b'{"facts": {}, "arrays": [["a", "<i4", 0, 99]]}',
        b'{"facts": {}, "arrays": [1]}',
        b"3",
    ):
        body = len(header).to_bytes(4, "little") + header
        content = cache_module._MAGIC + zlib.crc32(body).to_bytes(4, "little") + body
        (folder / f"{KEY}.bin").write_bytes(content)
        assert load("kind", KEY) is None


@pytest.mark.parametrize("build", [lambda path: path.write_text("a file"), lambda path: path.mkdir(mode=0o500)])
def test_a_folder_that_cannot_be_written_is_no_error(
    build: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, byte_level: Any
) -> None:
    place = tmp_path / "place"
    build(place)
    if os.access(place, os.W_OK) and place.is_dir():
        pytest.skip("the superuser may write anywhere")
    monkeypatch.setenv("GUIDED_CACHE", str(place))
    assert not store("kind", KEY, sample())
    assert load("kind", KEY) is None
    assert Vocabulary.from_tokenizer(byte_level).byte_complete


def test_a_full_disk_leaves_no_part(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not store("kind", KEY, sample())
    assert list((cache_folder / "kind").iterdir()) == []


def test_empty_setting_means_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, byte_level: Any) -> None:
    monkeypatch.setenv("GUIDED_CACHE", "")
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert cache_directory() is None
    assert not store("kind", KEY, sample())
    assert load("kind", KEY) is None
    assert Vocabulary.from_tokenizer(byte_level).byte_complete
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/guided"),
        ("linux", {"HOME": "/h"}, "/h/.cache/guided"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/guided"),
        ("win32", {"LOCALAPPDATA": "/l", "HOME": "/h"}, "/l/guided/cache"),
        ("win32", {"HOME": "/h"}, "/h/AppData/Local/guided/cache"),
    ],
)
@pytest.mark.skipif(os.name != "posix", reason="the paths are POSIX")
def test_platform_folders(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GUIDED_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert str(cache_directory()) == expected


def test_vocabulary_is_stored_once_and_read_back(
    byte_level: Any, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocab = Vocabulary.from_tokenizer(byte_level, size=600)
    arrays = [vocab.trie.byte.tolist(), vocab.trie.end.tolist(), vocab.trie.token_ids.tolist()]
    content = (vocab.tokens, vocab.eos_ids, vocab.digest, vocab.first_token_strips_space)
    (entry,) = cache_folder.rglob("*.bin")
    written = entry.stat().st_mtime_ns
    del vocab
    forget()

    def unwanted(*_: Any) -> None:
        raise AssertionError("the vocabulary was built again")

    monkeypatch.setattr("guided.vocab.vocabulary.build_trie", unwanted)
    monkeypatch.setattr("guided.vocab.families.fast.piece_decoder", unwanted)
    again = Vocabulary.from_tokenizer(byte_level, size=600)
    assert (again.tokens, again.eos_ids, again.digest, again.first_token_strips_space) == content
    assert [again.trie.byte.tolist(), again.trie.end.tolist(), again.trie.token_ids.tolist()] == arrays
    assert entry.stat().st_mtime_ns == written
    assert not again.data.flags.writeable


def test_damaged_entry_is_built_again_and_replaced(byte_level: Any, cache_folder: Path) -> None:
    tokens = Vocabulary.from_tokenizer(byte_level).tokens
    (entry,) = cache_folder.rglob("*.bin")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-100])
    forget()
    assert Vocabulary.from_tokenizer(byte_level).tokens == tokens
    assert entry.read_bytes() == whole


def test_without_cache_nothing_is_written(byte_level: Any, cache_folder: Path) -> None:
    Vocabulary.from_tokenizer(byte_level, cache=False)
    assert not cache_folder.exists()


def test_whatever_changes_the_bytes_changes_the_key(fresh_byte_level: Any, cache_folder: Path) -> None:
    from tokenizers import decoders

    def entries() -> int:
        return len(list(cache_folder.rglob("*.bin")))

    tokenizer = fresh_byte_level
    Vocabulary.from_tokenizer(tokenizer)
    Vocabulary.from_tokenizer(tokenizer)
    assert entries() == 1
    Vocabulary.from_tokenizer(tokenizer, eos_ids=[3])
    Vocabulary.from_tokenizer(tokenizer, size=700)
    assert entries() == 3
    tokenizer.add_tokens(["<new>"])
    new = Vocabulary.from_tokenizer(tokenizer)
    assert new.token_bytes(tokenizer.token_to_id("<new>")) is None
    text = Vocabulary.from_tokenizer(tokenizer, text_ids=[tokenizer.token_to_id("<new>")])
    assert text.token_bytes(tokenizer.token_to_id("<new>")) == b"<new>"
    assert entries() == 5
    # The piece of a word becomes an added token: same pieces, other meaning.
    the = tokenizer.token_to_id("Ġthe")
    assert Vocabulary.from_tokenizer(tokenizer).token_bytes(the) == b" the"
    tokenizer.add_tokens(["Ġthe"])
    assert Vocabulary.from_tokenizer(tokenizer).token_bytes(the) is None
    tokenizer.decoder = decoders.Metaspace()
    assert Vocabulary.from_tokenizer(tokenizer).first_token_strips_space
    assert entries() == 7


def test_a_second_process_reads_without_numba(byte_level: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    byte_level.save(str(file))
    code = (
        "import sys, tokenizers\n"
        "from guided.vocab import Vocabulary\n"
        f"vocab = Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_file({str(file)!r}))\n"
        "print(vocab.digest, vocab.trie.n_nodes, 'numba' in sys.modules)"
    )

    def run() -> str:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()

    vocab = Vocabulary.from_tokenizer(byte_level, cache=False)
    first, second = run(), run()
    assert first == f"{vocab.digest} {vocab.trie.n_nodes} {JUST_IN_TIME}"
    assert second == f"{vocab.digest} {vocab.trie.n_nodes} False"


def test_many_processes_at_once(cache_folder: Path) -> None:
    # Each process stores and loads the same key again and again: whoever finds the entry finds it whole.
    code = (
        "import numpy as np\n"
        "from guided.vocab.cache import Entry, load, store\n"
        "found = 0\n"
        "for round in range(60):\n"
        "    entry = load('kind', 'k')\n"
        "    if entry is not None:\n"
        "        found += 1\n"
        "        assert entry.arrays['a'].size == 50000 and (entry.arrays['a'] == 7).all()\n"
        "    else:\n"
        "        assert not found, 'an entry went away'\n"
        "    assert store('kind', 'k', Entry(facts={}, arrays={'a': np.full(50000, 7, np.int32)}))\n"
        "print(found)"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    found = [process.communicate()[0] for process in started]
    assert all(process.returncode == 0 for process in started)
    assert all(int(text) >= 59 for text in found)
    assert [path.name for path in (cache_folder / "kind").iterdir()] == ["k.bin"]

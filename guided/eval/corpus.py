"""Schemas of JSONSchemaBench from the layouts in which people have it: what is in a folder or file, row by row.

1. The data set's snapshot: parquet, JSON or JSON Lines files with the columns ``json_schema`` and ``unique_id``, in a
   folder for each split (``Github_easy/test-00000-of-00001.parquet``) or named by it (``data/Github_easy-00000-...``).
2. The repository's ``data`` folder: one schema a file, in a folder for each split (``Github_easy/o12.json``).
3. MaskBench: rows ``{id, schema, tests}``, as ``.jsonl``, ``.jsonl.gz``, or one row a file; the split is in the id.

Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guided.errors import GuidedError

__all__ = ["SchemaRow", "choose", "read_rows"]

LAYOUTS = (
    "Expected is the data set's snapshot (parquet, JSON or JSON Lines with json_schema and unique_id), the"
    " repository's data folder (one schema a file, a folder for each split), or MaskBench's rows {id, schema, tests}."
)
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SUBSETS = {"train", "val", "validation", "test"}
"""Files of a split's folder; the benchmark runs on all of them."""
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json", ".json.gz")
_METADATA = {"dataset_info.json", "dataset_infos.json", "state.json"}
"""What the tools of data sets write beside the data."""


@dataclass(frozen=True)
class SchemaRow:
    """One schema of the benchmark."""

    id: str
    split: str
    schema: Any
    """The schema as data."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what the row says, so that a changed schema is another row."""
        content = json.dumps([self.split, self.id, self.schema], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def read_rows(path: Path) -> list[SchemaRow]:
    """All schemas of a folder or file, sorted by split and id; each id of a split once.

    Raises `GuidedError` for a path that holds none, and for a file that is not what its place says.
    """
    if not path.exists():
        raise GuidedError(f"there is no data at {str(path)!r}", remedy="Pass the folder of the benchmark with --data.")
    files = [path] if path.is_file() else _files(path)
    if not files:
        raise GuidedError(f"{str(path)!r} holds no schemas", remedy=LAYOUTS)
    found: dict[tuple[str, str], SchemaRow] = {}
    for file in files:
        for row in _rows_of(file, path):
            found.setdefault((row.split, row.id), row)
    if not found:
        raise GuidedError(f"{str(path)!r} holds no schemas", remedy=LAYOUTS)
    return [found[key] for key in sorted(_without_unions(found))]


def choose(rows: Iterable[SchemaRow], limit: int | None = None, splits: Iterable[str] = ()) -> list[SchemaRow]:
    """At most ``limit`` rows, in turn from every split (of those named, else of all), always in the same order.

    Inside a split the order is that of a hash of the ids, so any beginning is a fair sample, and a greater limit gives
    the rows of a smaller one and more.  Raises `GuidedError` for a split that does not exist.
    """
    by_split: dict[str, list[SchemaRow]] = defaultdict(list)
    for row in rows:
        by_split[row.split].append(row)
    wanted = list(splits)
    for name in wanted:
        if name not in by_split:
            raise GuidedError(f"there is no split {name!r}", remedy=f"The splits are: {', '.join(sorted(by_split))}.")
    kept = [
        sorted(members, key=lambda row: hashlib.sha256(row.id.encode()).digest())
        for name, members in sorted(by_split.items())
        if not wanted or name in wanted
    ]
    longest = max(map(len, kept), default=0)
    turns = [members[turn] for turn in range(longest) for members in kept if turn < len(members)]
    return turns if limit is None else turns[:limit]


def _files(folder: Path) -> list[Path]:
    """The data files under a folder; of a snapshot with both a folder for each split and ``data``, only the former.

    A checkout of the repository has its schemas in ``data``, and elsewhere files that are none.
    """
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if file.name.endswith(_SUFFIXES)
        and file.name not in _METADATA
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]
    below_data = [file for file in files if file.relative_to(folder).parts[0] == "data"]
    if not below_data or len(below_data) == len(files):
        return files
    tables = [file for file in files if file not in below_data and len(file.relative_to(folder).parts) == 2]
    tables = [file for file in tables if not file.name.endswith(".json")]
    return tables or below_data


def _rows_of(file: Path, root: Path) -> Iterator[SchemaRow]:
    if file.name.endswith(".parquet"):
        yield from _from_table(_read_parquet(file), file, root)
        return
    text = _read_text(file)
    if file.name.endswith((".jsonl", ".jsonl.gz")):
        # Not splitlines: JSON strings may hold U+2028 and its like.
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        yield from _from_table((_parsed(line, f"{file}, line {number}") for number, line in lines), file, root)
        return
    value = _parsed(text, str(file))
    if isinstance(value, list):
        yield from _from_table(value, file, root)
    elif isinstance(value, dict) and "schema" in value and "tests" in value:
        name = str(value.get("id") or _stem(file))
        yield SchemaRow(name, _split_in(name), value["schema"])
    elif isinstance(value, (dict, bool)):
        split = file.parent.name or "schemas"
        yield SchemaRow(f"{split}---{_stem(file)}", split, value)
    else:
        raise GuidedError(f"{str(file)!r} is no JSON Schema: it holds a {type(value).__name__}", remedy=LAYOUTS)


def _from_table(values: Iterable[Any], file: Path, root: Path) -> Iterator[SchemaRow]:
    for number, value in enumerate(values, 1):
        place = f"{file}, row {number}"
        if isinstance(value, dict) and "json_schema" in value and "unique_id" in value:
            written = value["json_schema"]
            schema = _parsed(written, place) if isinstance(written, str) else written
            name = str(value["unique_id"])
            yield SchemaRow(name, _split_by_place(file, root) or _split_in(name), schema)
        elif isinstance(value, dict) and "schema" in value and "id" in value:
            yield SchemaRow(str(value["id"]), _split_in(str(value["id"])), value["schema"])
        else:
            columns = ", ".join(value) if isinstance(value, dict) else type(value).__name__
            raise GuidedError(
                f"a row is neither the data set's nor MaskBench's: {columns}", where=place, remedy=LAYOUTS
            )


def _without_unions(found: dict[tuple[str, str], SchemaRow]) -> Iterator[tuple[str, str]]:
    """Without rows that a more specific split has too: the snapshot has ``Github`` beside ``Github_easy`` and so on."""
    splits = {split for split, _ in found}
    for split, name in found:
        specific = [other for other in splits if other.startswith(f"{split}_")]
        if not any((other, name) in found for other in specific):
            yield split, name


def _split_by_place(file: Path, root: Path) -> str:
    """The split of a snapshot's file by its folder, else by its name; empty where neither says."""
    if file == root:
        inside: tuple[str, ...] = (file.name,)
    else:
        inside = file.relative_to(root).parts
    stem = _SHARD.sub("", _stem(file))
    if stem not in _SUBSETS:
        return "" if stem in ("data", "rows") else stem
    folder = inside[-2] if len(inside) > 1 else root.name if file != root else file.parent.name
    return "" if folder == "data" else folder


def _split_in(name: str) -> str:
    """The split that an id begins with: ``Github_easy---o12``, ``BFCL_simple_7---0``, ``BFCL_java_0``."""
    head = name.split("---")[0]
    family = head.split("_")[0]
    return head if family == "Github" else family


def _stem(file: Path) -> str:
    return re.sub(r"(\.parquet|\.jsonl|\.json)?(\.gz)?$", "", file.name)


def _read_text(file: Path) -> str:
    try:
        data = file.read_bytes()
        return (gzip.decompress(data) if file.name.endswith(".gz") else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise GuidedError(f"{str(file)!r} cannot be read: {error}", remedy="Check the file.") from error


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GuidedError(f"not JSON: {error}", where=place, remedy="Correct or remove the file.") from error


def _read_parquet(file: Path) -> list[Any]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise GuidedError(
            f"{str(file)!r} is parquet, which needs the package pyarrow",
            remedy="Install it: pip install 'guided-decoding[eval]'; or export the data set as JSON Lines.",
        ) from error
    try:
        rows: list[Any] = parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as error:
        raise GuidedError(f"{str(file)!r} is not parquet: {error}", remedy="Check the file.") from error
    return rows

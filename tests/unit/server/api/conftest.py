"""One server for most tests, with all that requests may name."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import openai
import pytest

import guided.hf
from guided.draft import auto
from guided.grammar.sql import reflect
from guided.hf.language_model import wrapped
from guided.hf.loading import LoadedModel
from guided.server.api.serving import warm
from guided.server.api.settings import Settings
from guided.steer import Contrastive, Stack
from tests.unit.server.api.served import Served, served


@pytest.fixture(scope="session")
def loaded() -> LoadedModel:
    loaded = guided.hf.load("nano")
    warm(loaded)
    return loaded


@pytest.fixture(scope="session")
def shared(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("databases") / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table users (id integer primary key, name text)")
    settings = Settings(
        aliases=("gpt-4o-mini",), grace_seconds=20, databases={"shop": reflect(f"sqlite:///{path}")},
        steerers={"careful": Stack([Contrastive(wrapped(guided.hf.load("nano-amateur")), alpha=0.1)])},
        drafts={"auto": auto()},
    )  # fmt: skip
    with served(loaded, settings) as found:
        yield found


@pytest.fixture
def server(shared: Served) -> Iterator[Served]:
    """The shared server; what it answered in a test has to be as it is published."""
    yield shared
    problems, shared.checking.problems = shared.checking.problems, []
    assert not problems


@pytest.fixture
def client(server: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=60) as found:
        yield found

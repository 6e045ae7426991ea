"""The routes of the page: what is sent, under which policy, and that the files need nothing from anywhere else."""

from __future__ import annotations

import gzip
import re

import pytest

pytest.importorskip("starlette")
from starlette.applications import Starlette
from starlette.testclient import TestClient

from guided.server.page.routes import POLICY, STATIC, page_routes

FILES = sorted(path.name for path in STATIC.iterdir())
SCRIPTS = [name for name in FILES if name.endswith(".js")]

MOST_BYTES = 33_000
"""What a browser fetches for the page, all files together, each compressed: 31.3 kB when this was written."""


@pytest.fixture(scope="module")
def client():
    return TestClient(Starlette(routes=page_routes()))


def path_of(name: str) -> str:
    return "/" if name == "index.html" else f"/static/{name}"


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_sent_as_it_is(client, name):
    answer = client.get(path_of(name), headers={"accept-encoding": "identity"})
    assert answer.status_code == 200 and answer.content == (STATIC / name).read_bytes()
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    kept = client.get(path_of(name), headers={"if-none-match": answer.headers["etag"]})
    assert kept.status_code == 304 and kept.content == b""


def test_compressed_files_are_the_same_and_small(client):
    total = 0
    for name in FILES:
        with client.stream("GET", path_of(name), headers={"accept-encoding": "gzip"}) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            raw = b"".join(answer.iter_raw())
        assert gzip.decompress(raw) == (STATIC / name).read_bytes()
        total += len(raw)
    assert total < MOST_BYTES


@pytest.mark.parametrize(
    "path", ["/static/", "/static/../routes.py", "/static/%2e%2e/routes.py", "/static/index.html", "/page.css"]
)
def test_nothing_else_is_sent(client, path):
    assert client.get(path).status_code == 404


def test_the_policy_lets_nothing_else_in():
    directives = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))
    assert directives["default-src"] == "'none'" and directives["script-src"] == "'self'"
    assert "unsafe" not in POLICY and "http" not in POLICY and "*" not in POLICY


@pytest.mark.parametrize("name", FILES)
def test_files_name_no_other_place(name):
    text = (STATIC / name).read_text()
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]+[\w./-]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bon\w+=|style=\"|innerHTML|insertAdjacentHTML|\beval\(|new Function", text)


@pytest.mark.parametrize("name", SCRIPTS)
def test_modules_import_what_is_there(name):
    for names, module in re.findall(
        r"^import \{([^}]*)\} from \"\./([\w.]+)\";", (STATIC / name).read_text(), re.MULTILINE
    ):
        exported = (STATIC / module).read_text()
        for one in names.split(","):
            assert re.search(
                rf"^export (?:const|class|async function\*|async function|function) {one.strip()}\b",
                exported,
                re.MULTILINE,
            )


def test_scripts_look_for_elements_that_are_there():
    ids = set(re.findall(r'\bid="(\w+)"', (STATIC / "index.html").read_text()))
    wanted = {one for name in SCRIPTS for one in re.findall(r'byId\("(\w+)"\)', (STATIC / name).read_text())}
    assert wanted and not wanted - ids

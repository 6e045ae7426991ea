"""The file of defaults: which one is read, what wins over what, and that nothing in it is passed over."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import one_line

GRAMMAR = '{"type": "string", "maxLength": 3}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, below one where files of defaults are written."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (below / "g.json").write_text(GRAMMAR)
    monkeypatch.chdir(below)
    return tmp_path


def test_the_command_line_wins(guided_cli, person, letter, model_folder, folder):
    (folder / "guided.toml").write_text(f"""
        model = {json.dumps(str(model_folder))}
        max-new-tokens = 40
        [extract]
        schema = {json.dumps(str(person))}   # which the command line must otherwise say
        max-new-tokens = 3
        [sql]
        seed = 7
    """)
    result = guided_cli("extract", letter)
    assert result.exit_code == 4 and "3 is too few" in one_line(result.stderr), "the command's own table wins"
    result = guided_cli("extract", letter, "--max-new-tokens", 60)
    assert result.exit_code == 0 and json.loads(result.stdout).keys() == {"name", "age"}
    result = guided_cli("--no-config", "extract", letter)
    assert result.exit_code == 2 and "Missing option '--schema'" in result.stderr


def test_options_that_may_be_repeated(guided_cli, folder):
    (folder / "guided.toml").write_text("[sql]\ndb = 'x'\nschema = ['main', 'other']\nmust-exclude = 'x'")
    result = guided_cli("sql", "question", "--sampler", "smc")
    assert result.exit_code == 2 and "search" in one_line(result.stderr)


def test_flags(guided_cli, person, model_folder, folder):
    (folder / "guided.toml").write_text(f"[extract]\nbatch = true\nmodel = {json.dumps(str(model_folder))}")
    result = guided_cli("extract", "-s", person, stdin='"Ada is 36."')
    assert result.exit_code == 0 and json.loads(result.stdout)["id"] == 0


def test_the_nearest_file_is_read(guided_cli, folder):
    said = lambda: guided_cli("check", "g.json").stderr  # noqa: E731
    assert said() == ""
    (folder / "guided.toml").write_text("outer = 1")
    assert "outer" in said()
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'guided-not'\n")
    assert "outer" in said(), "a project that says nothing of guided is passed by"
    (folder / "a" / "pyproject.toml").write_text("[tool.guided]\ninner = 1\n")
    assert "pyproject.toml, line 2, key tool.guided.inner" in said()
    (folder / "a" / "guided.toml").write_text("other = 1")
    assert "both guided.toml and pyproject.toml" in said()
    (folder / "a" / "b" / "guided.toml").write_text("")
    assert said() == ""
    assert "outer" in guided_cli("--config", folder / "guided.toml", "check", "g.json").stderr
    assert guided_cli("--no-config", "--config", "x", "check", "g.json").exit_code == 2


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("[extract", None, "not TOML"),
        ("\nsead = 1", "line 2, key sead", "no command has this option"),
        ("[extract]\nbatch-sze = 1", "line 2, key extract.batch-sze", "Did you mean batch-size?"),
        ("[extrct]\nseed = 1", "line 1, key extrct", "Did you mean extract?"),
        ("extract = 1", "line 1, key extract", "no command has this option"),
        ("eval.sql = 1", "line 1, key eval.sql", "options are a table"),
        ("[eval.spl]\nlimit = 1", "line 1, key eval.spl", "Did you mean sql?"),
        ("[extract]\nfile = 'x'", "key extract.file", "has no such option"),
        ("[extract]\njson = true", "key extract.json", "has no such option"),
        ("[extract]\nbatch_size = 2", "key extract.batch_size", "Did you mean batch-size?"),
        ("[extract]\nbatch-size = 'x'", "key extract.batch-size", "integer"),
        ("[extract]\nbatch-size = 0", "line 2, key extract.batch-size", "See guided --help for --batch-size"),
        ("[extract]\nbatch-size = [1]", "key extract.batch-size", "a text or a number"),
        ("[extract]\nbatch-size = true", "key extract.batch-size", "a text or a number"),
        ("[extract]\nbatch = 'yes'", "key extract.batch", "true or false"),
        ("[extract]\nbatch = 1", "key extract.batch", "true or false"),
        ("[extract]\nsampler = 'guess'", "key extract.sampler", "guess"),
        ("[extract]\nmust-include = [1979-05-27]", "key extract.must-include", "or a list of them"),
        ("[extract]\nsteer = ['help']", "line 2, key extract.steer", "help is no default"),
        ("[extract]\nsearch = 'help'", "line 2, key extract.search", "help is no default"),
        ("[extract]\nseed = {a = 1}", "key extract.seed", "a text or a number"),
    ],
)
def test_what_a_file_may_not_say(guided_cli, folder, text, place, says):
    (folder / "guided.toml").write_text(text)
    result = guided_cli("check", "g.json")
    assert result.exit_code == 2 and result.stdout == ""
    line = one_line(result.stderr)
    assert str(folder / "guided.toml") in line and (place or "") in line
    assert says in line


def test_a_wrong_file_is_in_nobodys_way_who_does_not_read_it(guided_cli, folder):
    (folder / "guided.toml").write_text("[extract")
    assert guided_cli("--no-config", "check", "g.json").exit_code == 0
    assert guided_cli("version").exit_code == 0 and guided_cli("--help").exit_code == 0


@pytest.mark.parametrize("name", ["no.toml", "a", "pyproject.toml"])
def test_a_file_that_is_named_must_be_one(guided_cli, folder, name):
    (folder / "pyproject.toml").write_text("[project]\nname = 'guided'")
    result = guided_cli("--config", folder / name, "check", "g.json")
    assert result.exit_code == 2 and name in one_line(result.stderr)

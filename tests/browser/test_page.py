"""The page in a real browser, in front of the real server: what a user does with it, by mouse and by keyboard."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tests.browser.conftest import PATIENCE, serving, until

PICTURES = os.environ.get("GUIDED_SCREENSHOTS")
"""The folder that screenshots are written to; none are made without one."""
AXE = Path(os.environ.get("GUIDED_AXE", "axe.min.js"))
"""The file of axe-core, whose checks are left out where it is not there."""

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": False}  # fmt: skip


def settled(page, n=1):
    """Wait until so many answers are done."""
    until(page, f"document.querySelectorAll('.answer:not([hidden]) .state.done').length === {n}")


def run(page, n=1):
    page.click("#run")
    settled(page, n)


def write(page, text, notation="json_schema"):
    page.select_option("#notation", notation)
    page.fill("#text", text)


def picture(page, name):
    if not PICTURES:
        return
    from PIL import Image

    # With a palette it has a third of the bytes.
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(Path(PICTURES) / f"page-{name}.png", optimize=True)


def answer_text(page, at=0):
    """The text of all tokens, as they stand on the page."""
    return (
        page.locator(".answer .strip")
        .nth(at)
        .evaluate(
            "strip => [...strip.querySelectorAll('.token:not(.special)')].map(token => token.textContent).join('')"
        )
    )


def test_a_schema_is_typed_with_suggestions(open_page):
    page = open_page()
    page.fill("#text", "")
    page.locator("#text").press_sequentially('{"ty')
    page.get_by_role("option", name=re.compile("^type")).wait_for()
    assert page.get_attribute("#text", "aria-activedescendant") == "suggestion0"
    page.keyboard.press("Enter")
    assert page.input_value("#text") == '{"type": '
    page.locator("#text").press_sequentially('"bool')
    page.get_by_role("option", name=re.compile("^boolean")).wait_for()
    page.keyboard.press("Tab")
    assert page.input_value("#text") == '{"type": "boolean"'
    page.keyboard.press("Escape")
    page.locator("#text").press_sequentially("}")
    page.wait_for_selector(".verdict.good")
    run(page)
    assert json.loads(answer_text(page)) in (True, False)


def test_what_is_wrong_is_said_and_marked(open_page):
    page = open_page()
    write(page, '{\n  "type": "object",\n  "minimum": }')
    page.wait_for_selector(".verdict.bad")
    assert "line 3" in page.inner_text("#verdict") and page.locator(".back .fault").inner_text() == "}"
    write(page, '{"allOf": [{"type": "string"}, {"type": "null"}]}')
    until(page, "/no value|unsatisfiable|never|nothing|empty/i.test(document.getElementById('verdict').textContent)")
    assert page.get_attribute("#verdict", "class") == "verdict bad"
    write(page, "start: thing\n", "lark")
    until(page, "document.getElementById('verdict').textContent.includes('thing')")


def test_an_answer_streams_into_all_views(open_page):
    page = open_page()
    write(page, json.dumps(PERSON, indent=2))
    run(page)
    value = json.loads(answer_text(page))
    jsonschema.validate(value, PERSON)
    fields = page.locator(".tree .field")
    shown = fields.all_inner_texts()
    assert len(shown) == 3 and str(value["age"]) in shown[2] and shown[2].rstrip().endswith("%")
    at = page.locator(".token[data-at]").filter(has_text=str(value["age"])[0]).last
    at.hover()
    page.get_by_role("tab", name="Place in schema").click()
    at.hover()
    assert "#/properties/age" in page.locator(".pointers").inner_text()
    assert '"age"' in page.locator(".listing .here").first.inner_text()


def test_a_token_says_what_else_might_have_come(open_page):
    page = open_page()
    write(page, json.dumps(PERSON))
    run(page)
    token = page.locator(".token[data-at]").nth(1)
    token.hover()
    card = page.get_by_role("dialog", name="Token")
    card.wait_for()
    assert "drawn with" in card.inner_text() and card.locator("tbody tr.refused").count() > 0
    # The first refused one is explained by the engine without being asked for.
    until(page, "/is not allowed: .* expected/.test(document.getElementById('card').textContent)")
    page.mouse.move(5, 5)
    card.wait_for(state="hidden")


def test_tokens_by_keyboard(open_page):
    page = open_page()
    write(page, json.dumps(PERSON))
    run(page)
    tokens = page.locator(".token[data-at]")
    assert page.locator(".token[tabindex='0'][data-at]").count() == 1
    tokens.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.at") == "2"
    assert "probability" in page.evaluate("document.activeElement.ariaLabel")
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('card').contains(document.activeElement)")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.at") == "2" and not page.is_visible("#card")
    page.get_by_role("tab", name="Fields").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Particles").get_attribute("aria-selected") == "true"


def test_particles_over_time(open_page):
    page = open_page()
    # So many texts, hot, that whatever the model's weights no two particles are alike for long.
    write(page, "[ab]{30}", "regex")
    page.select_option("#methodA", "sampler:smc")
    assert page.input_value("#temperatureA") == "1"
    page.fill("#temperatureA", "2")
    page.fill("#particlesA", "8")
    page.fill("#seedA", "1")
    run(page)
    assert "log Z" in page.inner_text(".metrics") and "of 8" in page.inner_text(".metrics")
    steps = int(page.get_attribute("input[type=range]", "max"))
    assert steps > 10 and page.locator(".ess i").count() == steps
    last = page.locator(".picture .box").count()
    page.locator("input[type=range]").focus()
    page.keyboard.press("Home")
    assert page.inner_text(".facts-line").startswith(f"Step 1 of {steps}: 8 particles")
    assert page.locator(".picture .box").count() < last
    shares = page.locator(".texts tbody td:first-child").all_inner_texts()
    assert sum(float(re.sub(r"[^\d.]", "", share)) for share in shares) == pytest.approx(100, abs=3)  # rounded to 1 %


def test_a_search_lists_what_it_found(open_page):
    page = open_page()
    write(page, json.dumps(PERSON))
    page.select_option("#methodA", "search:beam")
    page.fill("#particlesA", "3")
    assert page.is_disabled("#temperatureA") and page.is_disabled("#draftA")
    run(page)
    jsonschema.validate(json.loads(page.inner_text(".strip .plain")), PERSON)
    scores = [float(score) for score in page.locator(".texts tbody td:first-child").all_inner_texts()]
    assert scores and scores == sorted(scores, reverse=True)


def test_databases_and_steerers_by_name(open_page, tmp_path):
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
    connection.close()
    careful = "careful=contrastive:model=nano-amateur,alpha=0.1"
    with serving("--db", f"shop=sqlite:///{file}", "--steer", careful) as address:
        page = open_page(at=address)
        page.select_option("#notation", "sql")
        assert page.input_value("#text") == "shop"
        page.fill("#prompt", "How many customers are there for each city?")
        page.select_option("#steerA", "careful")
        run(page)
        assert answer_text(page).startswith("SELECT") and "customers" in answer_text(page)


def test_two_settings_side_by_side(open_page):
    page = open_page()
    page.check("#compare")
    page.select_option("#draftA", "auto")
    page.fill("#temperatureB", "1.5")
    page.fill("#seedB", "3")
    run(page, 2)
    rows = page.locator("#comparison tbody tr").all_inner_texts()
    assert len(rows) >= 4 and rows[0].startswith("tokens")
    drafted = page.locator(".answer").first.locator(".token.drafted")
    assert "probability not said, mask took not said, drafted" in drafted.first.get_attribute("aria-label")
    drafted.first.hover()
    page.get_by_role("dialog", name="Token").wait_for()
    assert page.locator("#card").inner_text().count("not said") == 3
    same = answer_text(page, 0) == answer_text(page, 1)
    assert same == ("same text" in page.inner_text("#comparison caption"))
    assert same == (page.locator(".chip.differs").count() == 0)


@pytest.mark.parametrize("name", ["curl", "Python"])
def test_the_copied_request_runs(open_page, address, name, tmp_path):
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.fill("#prompt", "It's \"Ida's\" $HOME \\ and she is 7 years old.")
    write(page, json.dumps(PERSON))
    run(page)
    page.get_by_role("tab", name="Request").click()
    page.get_by_role("button", name=f"Copy {name}").click()
    text = page.evaluate("navigator.clipboard.readText()")
    command = ["bash", "-c", text] if name == "curl" else [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=tmp_path)
    said = json.loads(done.stdout)["choices"][0]["message"]["content"] if name == "curl" else done.stdout.rstrip("\n")
    assert said == answer_text(page)


def test_a_refused_request_says_why(open_page):
    page = open_page(allowed="400")
    page.fill("#max_tokensA", "3")
    page.click("#run")
    page.wait_for_selector(".state.failed")
    assert "shortest text" in page.inner_text(".note")


def test_a_running_answer_can_be_stopped(open_page):
    page = open_page()
    page.select_option("#notation", "none")
    page.fill("#max_tokensA", "900")
    page.fill("#temperatureA", "2")
    page.click("#run")
    page.wait_for_selector(".token[data-at]")
    page.click("#run")
    page.wait_for_selector(".state.stopped")
    assert page.inner_text("#run") == "Run"


def test_a_key_is_asked_for(open_page):
    with serving(GUIDED_API_KEY="open sesame") as address:
        page = open_page(at=address, allowed="401")
        assert page.inner_text("#server") == "a key is needed"
        page.fill("#key", "open sesame")
        page.keyboard.press("Enter")
        until(page, "document.getElementById('model').options.length === 1")
        run(page)
        assert "Nina" in answer_text(page)


def test_what_was_written_is_there_again(open_page):
    page = open_page()
    page.fill("#prompt", "Somebody is 80.")
    page.fill("#seedA", "5")
    page.select_option("#theme", "dark")
    page.reload()
    until(page, "document.getElementById('model').options.length === 1")
    assert (page.input_value("#prompt"), page.input_value("#seedA")) == ("Somebody is 80.", "5")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 1000), (375, 812)])
def test_it_fits_and_is_accessible(open_page, scheme, width, height):
    page = open_page(width, height, scheme, bypass_csp=True)
    name = f"{scheme}-{width}"
    page.select_option("#examples", label="An order")
    page.wait_for_selector(".verdict.good")
    run(page)
    page.evaluate("scrollTo(0, 0)" if width > 500 else "document.querySelector('.results').scrollIntoView()")
    page.locator(".token[data-at]").nth(2).click()
    until(page, "/expected/.test(document.getElementById('card').textContent)")
    picture(page, f"tokens-{name}")
    check(page)
    page.keyboard.press("Escape")
    page.select_option("#methodA", "sampler:smc")
    page.fill("#temperatureA", "1.5")
    page.fill("#seedA", "2")
    run(page)
    page.evaluate("scrollTo(0, 0)" if width > 500 else "document.querySelector('.results').scrollIntoView()")
    picture(page, f"particles-{name}")
    check(page)
    page.check("#compare")
    page.select_option("#methodA", "token:")
    page.fill("#temperatureA", "0")
    page.select_option("#draftA", "auto")
    page.fill("#temperatureB", "2")
    run(page, 2)
    page.get_by_role("tab", name="Fields").first.click()
    page.evaluate("scrollTo(0, 0)" if width > 500 else "document.querySelector('.results').scrollIntoView()")
    picture(page, f"compare-{name}")
    check(page)


def check(page):
    """Nothing is wider than the window, and axe finds nothing."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if not AXE.is_file():
        return
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "axe.run().then(result => result.violations.map(one => [one.id, one.nodes.map(node => node.html)]))"
    )
    assert found == [], found

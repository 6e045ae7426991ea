"""Records of everyday things (people, orders, films, meetings, houses) told in natural sentences.

Random field names teach copying; these teach that "lives in Oslo" is a city and "34 years old" an age.  Field names are
familiar here by design, so the evaluation reports this set apart; the values are still drawn from held-out words there.
"""

from __future__ import annotations

import random
from typing import Any

import words
from names import date_value, number_value, text_value, written_date
from record_corpus import RecordCase
from words import Lexicon

__all__ = ["random_familiar_case"]

Part = tuple[list[str], dict[str, Any], Any, list[str]]
"""Possible field names, the schema, the value and the possible phrases, each a fragment that follows the subject."""

TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
DATE: dict[str, Any] = {"type": "string", "format": "date"}


def _full_name(rng: random.Random, lexicon: Lexicon) -> str:
    last = (
        words.made_up_word(rng, lexicon).capitalize()
        if rng.random() < 0.3
        else words.pick(rng, words.LAST_NAMES, lexicon)
    )
    return f"{words.pick(rng, words.FIRST_NAMES, lexicon)} {last}"


def _email(rng: random.Random, lexicon: Lexicon) -> str:
    user = words.pick(rng, words.FIRST_NAMES, lexicon).lower()
    return f"{user}@{words.made_up_word(rng, lexicon)}.{rng.choice(['com', 'org', 'net', 'io'])}"


def _person(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    name, age = _full_name(rng, lexicon), rng.randint(18, 90)
    city, email = words.pick(rng, words.CITIES, lexicon), _email(rng, lexicon)
    firm = words.made_up_word(rng, lexicon).capitalize()
    job, phone = words.pick(rng, words.LOOSE_WORDS, lexicon), f"{rng.randint(100, 999)}-{rng.randint(1000, 9999)}"
    born, salary = date_value(rng), rng.randint(20, 99) * 1000
    said = written_date(rng, born)
    return name, [
        (["name", "name", "full_name", "person", "customer", "employee"], TEXT, name, []),
        (["age"], INTEGER, age, [f"is {age} years old", f"is {age}", f"aged {age}", f", {age},"]),
        (["city", "location", "home"], TEXT, city, [f"lives in {city}", f"from {city}", f"is based in {city}"]),
        (
            ["email", "mail"],
            TEXT,
            email,
            [f"can be reached at {email}", f"writes from {email}", f"has the email {email}"],
        ),
        (["company", "employer"], TEXT, firm, [f"works at {firm}", f"works for {firm}", f"is employed by {firm}"]),
        (["department", "team"], TEXT, job, [f"works in the {job} department", f"is in the {job} team"]),
        (["phone", "phone_number"], TEXT, phone, [f"has the phone number {phone}", f"answers on {phone}"]),
        (["birthday", "birth_date", "born"], DATE, born, [f"was born on {said}", f"has birthday on {said}"]),
        (["salary", "income"], INTEGER, salary, [f"earns {salary} a year", f"has a salary of {salary}"]),
    ]


def _order(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    buyer, count = _full_name(rng, lexicon), rng.randint(1, 60)
    item = f"{words.pick(rng, words.LOOSE_WORDS, lexicon)} {words.pick(rng, words.NOUNS, lexicon)}s"
    price = round(rng.randint(1, 900) + rng.randint(1, 99) / 100, 2)
    day, city = date_value(rng), words.pick(rng, words.CITIES, lexicon)
    said = written_date(rng, day)
    paid = rng.random() < 0.5
    return buyer, [
        (["customer", "buyer", "name", "client"], TEXT, buyer, []),
        (["quantity", "count", "amount"], INTEGER, count, [f"ordered {count} pieces", f"wants {count} of them"]),
        (["product", "item", "article"], TEXT, item, [f"bought {item}", f"ordered {item}", f"asked for {item}"]),
        (["price", "total", "unit_price"], NUMBER, price, [f"pays {price}", f"paid ${price}", f"for {price} EUR"]),
        (["date", "order_date", "ordered"], DATE, day, [f"on {said}", f"ordered on {said}"]),
        (["city", "destination"], TEXT, city, [f"with delivery to {city}", f"shipped to {city}"]),
        (
            ["paid", "is_paid"],
            {"type": "boolean"},
            paid,
            ["has paid", "already paid"] if paid else ["has not paid yet"],
        ),
    ]


def _work(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    title = text_value(rng, lexicon)
    maker, year = _full_name(rng, lexicon), rng.randint(1900, 2025)
    genre = words.pick(rng, words.LOOSE_WORDS, lexicon)
    pages, rating = rng.randint(40, 900), rng.randint(10, 99) / 10
    return title, [
        (["title", "book", "movie", "name"], TEXT, title, []),
        (
            ["author", "director", "writer"],
            TEXT,
            maker,
            [f"by {maker}", f"was made by {maker}", f"is a work of {maker}"],
        ),
        (["year", "published"], INTEGER, year, [f"appeared in {year}", f"from {year}", f"came out in {year}"]),
        (["genre", "category"], TEXT, genre, [f"is a {genre} title", f"belongs to {genre}"]),
        (["pages", "page_count"], INTEGER, pages, [f"has {pages} pages", f"runs to {pages} pages"]),
        (["rating", "score"], NUMBER, rating, [f"is rated {rating}", f"scores {rating}"]),
    ]


def _meeting(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    topic = " ".join(words.pick(rng, words.LOOSE_WORDS, lexicon) for _ in range(2))
    day, city, room = date_value(rng), words.pick(rng, words.CITIES, lexicon), number_value(rng, True)
    people = [words.pick(rng, words.FIRST_NAMES, lexicon) for _ in range(rng.randint(2, 3))]
    people = list(dict.fromkeys(people))
    said = written_date(rng, day)
    listed = " and ".join(people) if len(people) < 3 else f"{', '.join(people[:-1])} and {people[-1]}"
    return f"The {topic} meeting", [
        (["topic", "title", "subject"], TEXT, topic, []),
        (["date", "day"], DATE, day, [f"is on {said}", f"takes place on {said}", f"was moved to {said}"]),
        (["city", "place", "location"], TEXT, city, [f"is held in {city}", f"in {city}"]),
        (["room"], INTEGER, int(room), [f"in room {room}", f"uses room {room}"]),
        (["people", "attendees", "participants"], {"type": "array", "items": TEXT}, people, [f"with {listed}"]),
    ]


def _journey(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    person, fare = _full_name(rng, lexicon), round(rng.randint(20, 900) + rng.randint(1, 99) / 100, 2)
    start, end = rng.sample([words.pick(rng, words.CITIES, lexicon) for _ in range(8)], 2)
    day, code = date_value(rng), f"{rng.choice('ABCDEFGHKL')}{rng.choice('ABCDEFGHKL')}{rng.randint(10, 999)}"
    said, seats = written_date(rng, day), rng.randint(1, 9)
    return person, [
        (["passenger", "name", "traveler", "guest"], TEXT, person, []),
        (["origin", "departure_city", "start"], TEXT, start, [f"flies from {start}", f"leaves from {start}"]),
        (["destination", "arrival_city", "target"], TEXT, end, [f"goes to {end}", f"to {end}", f"arrives in {end}"]),
        (["date", "departure_date", "travel_date"], DATE, day, [f"on {said}", f"leaves on {said}"]),
        (["flight", "code", "number"], TEXT, code, [f"with flight {code}", f"on {code}"]),
        (["seats", "tickets"], INTEGER, seats, [f"with {seats} seats", f"needs {seats} tickets"]),
        (["fare", "price", "cost"], NUMBER, fare, [f"for ${fare}", f"and pays {fare}"]),
    ]


def _ware(rng: random.Random, lexicon: Lexicon) -> tuple[str, list[Part]]:
    adjective = words.pick(rng, words.LOOSE_WORDS, lexicon)
    name = f"{words.made_up_word(rng, lexicon).capitalize()} {rng.choice('XSPMZ')}{rng.randint(1, 99)}"
    maker, price = (
        words.made_up_word(rng, lexicon).capitalize(),
        round(rng.randint(1, 2000) + 0.01 * rng.randint(0, 99), 2),
    )
    weight, stock = rng.randint(1, 400) / 10, rng.randint(0, 900)
    kind, stocked = words.pick(rng, words.NOUNS, lexicon), rng.random() < 0.5
    available = "is available" if stocked else "is not available"
    return f"The {name}", [
        (["name", "product", "model"], TEXT, name, []),
        (["color", "colour"], TEXT, adjective, [f"comes in {adjective}", f"in {adjective}"]),
        (["brand", "maker", "manufacturer"], TEXT, maker, [f"by {maker}", f"is made by {maker}", f"from {maker}"]),
        (["price", "cost"], NUMBER, price, [f"costs ${price}", f"costs {price} euros", f"sells for {price}"]),
        (["weight"], NUMBER, weight, [f"weighs {weight} kg", f"has a weight of {weight}"]),
        (["stock", "quantity"], INTEGER, stock, [f"with {stock} in stock", f"has {stock} left"]),
        (["category", "type", "kind"], TEXT, kind, [f"is a {kind}", f"belongs to the category {kind}"]),
        (["available", "in_stock"], {"type": "boolean"}, stocked, [available]),
    ]


def random_familiar_case(rng: random.Random, lexicon: Lexicon) -> RecordCase:
    """Two to six fields of one everyday thing; the schema may ask for fewer than the text tells."""
    subject, parts = rng.choice([_person, _person, _order, _work, _meeting, _journey, _ware])(rng, lexicon)
    told = [parts[0], *rng.sample(parts[1:], rng.randint(1, min(5, len(parts) - 1)))]
    pieces = [rng.choice(part[3]) for part in told[1:]]
    text = subject
    for index, piece in enumerate(pieces):
        text += piece if piece.startswith(",") else f"{rng.choice([' and ', ', ']) if index else ' '}{piece}"
    text = text.rstrip(",") + rng.choice([".", ".", ""])
    if rng.random() < 0.2:
        text = f"{rng.choice(['Note:', 'Hello,', 'FYI:', 'From the archive:'])} {text}"
    wanted = [part for part in told if rng.random() < 0.9] or told[:1]
    rng.shuffle(wanted)
    properties: dict[str, Any] = {}
    record: dict[str, Any] = {}
    for names, schema, value, _ in wanted:
        name = rng.choice(names)
        if name not in properties:
            properties[name] = schema
            record[name] = value
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return RecordCase(schema, text, record)

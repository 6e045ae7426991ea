r"""Is a text a pattern of ECMA-262 with the flag ``u``?  Recursive descent over the grammar, early errors at the end.

Written from sections 21.2.1 and 21.2.1.1 of the 11th edition, one function a production; knows no automata.
"""

from __future__ import annotations

import unicodedata

from guided.grammar.formats.unicode_names import property_expressions

SYNTAX = "^$\\.*+?()[]{}|"
HEX = "0123456789abcdefABCDEF"


class Wrong(Exception):
    """The text is no pattern."""


def is_pattern(text: str, *, backward: bool = False, plain_names: bool = False) -> bool:
    """Is it one?  ``backward``: references must come behind their groups; ``plain_names``: no escapes in names."""
    parser = _Parser(text, backward, plain_names)
    try:
        parser.disjunction()
        if parser.at < len(text):
            return False
    except Wrong:
        return False
    return parser.refers_well()


class _Parser:
    def __init__(self, text: str, backward: bool, plain_names: bool) -> None:
        self.text, self.at = text, 0
        self.backward, self.plain_names = backward, plain_names
        self.groups = 0
        self.names: list[str] = []
        self.numbers: list[int] = []
        self.named: list[str] = []

    def refers_well(self) -> bool:
        if len(set(self.names)) < len(self.names):
            return False
        return all(number <= self.groups for number in self.numbers) and set(self.named) <= set(self.names)

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def need(self, token: str) -> None:
        if not self.take(token):
            raise Wrong

    def one(self) -> str:
        if self.at == len(self.text):
            raise Wrong
        self.at += 1
        return self.text[self.at - 1]

    def one_of(self, choice: str) -> str:
        found = self.one()
        if found not in choice:
            raise Wrong
        return found

    def disjunction(self) -> None:
        while self.at < len(self.text) and self.text[self.at] != ")":
            if not self.take("|"):
                self.term()

    def term(self) -> None:
        if any(self.take(token) for token in ("^", "$", "\\b", "\\B")):
            return
        for token in ("(?=", "(?!", "(?<=", "(?<!"):
            if self.take(token):
                self.disjunction()
                self.need(")")
                return
        self.atom()
        self.quantifier()

    def quantifier(self) -> None:
        if self.take("{"):
            low = self.digits()
            if self.take(",") and not self.text.startswith("}", self.at) and self.digits() < low:
                raise Wrong
            self.need("}")
        elif not any(self.take(token) for token in "*+?"):
            return
        self.take("?")

    def digits(self) -> int:
        found = self.one_of("0123456789")
        while self.text[self.at : self.at + 1] in tuple("0123456789"):
            found += self.one()
        return int(found)

    def atom(self) -> None:
        if self.take("(?:"):
            self.disjunction()
            self.need(")")
        elif self.take("("):
            if self.take("?"):
                self.need("<")
                self.names.append(self.name())
            self.groups += 1
            self.disjunction()
            self.need(")")
        elif self.take("["):
            self.character_class()
        elif self.take("\\"):
            self.atom_escape()
        elif not self.take(".") and self.one() in SYNTAX:
            raise Wrong

    def name(self) -> str:
        found = ""
        while not self.take(">"):
            letter = self.one()
            if letter == "\\":
                if self.plain_names:
                    raise Wrong
                self.need("u")
                letter = chr(self.unicode())
            category = unicodedata.category(letter)
            start = category[0] == "L" or category == "Nl" or letter in "$_\u1885\u1886\u2118\u212e\u309b\u309c"
            part = category in ("Mn", "Mc", "Nd", "Pc") or letter in "\u200c\u200d\u00b7\u0387\u19da"
            if letter == "\u2e2f" or not (start or (found and (part or "\u1369" <= letter <= "\u1371"))):
                raise Wrong
            found += letter
        if not found:
            raise Wrong
        return found

    def atom_escape(self) -> None:
        if self.text[self.at : self.at + 1] in tuple("123456789"):
            self.numbers.append(self.digits())
            if self.backward and self.numbers[-1] > self.groups:
                raise Wrong
        elif self.take("k"):
            self.need("<")
            self.named.append(self.name())
            if self.backward and self.named[-1] not in self.names:
                raise Wrong
        else:
            self.character_escape(in_class=False)

    def character_escape(self, *, in_class: bool) -> int | None:
        """The character, None for a set of them."""
        letter = self.one()
        if letter in "dDsSwW":
            return None
        if letter in "pP":
            self.need("{")
            end = self.text.find("}", self.at)
            if end < 0 or self.text[self.at : end] not in property_expressions():
                raise Wrong
            self.at = end + 1
            return None
        if letter in "fnrtv":
            return {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}[letter]
        if letter == "c":
            control = self.one()
            if not (control.isascii() and control.isalpha()):
                raise Wrong
            return ord(control) % 32
        if letter == "0":
            if self.text[self.at : self.at + 1] in tuple("0123456789"):
                raise Wrong
            return 0
        if letter == "x":
            return int(self.one_of(HEX) + self.one_of(HEX), 16)
        if letter == "u":
            return self.unicode()
        if letter in SYNTAX + "/" or (in_class and letter == "-"):
            return ord(letter)
        if in_class and letter == "b":
            return 8
        raise Wrong

    def unicode(self) -> int:
        if self.take("{"):
            digits = ""
            while not self.take("}"):
                digits += self.one_of(HEX)
            if not digits or int(digits, 16) > 0x10FFFF:
                raise Wrong
            return int(digits, 16)
        code = self.four()
        back = self.at
        if 0xD800 <= code < 0xDC00 and self.take("\\u"):
            try:
                low = self.four()
            except Wrong:
                low = 0
            if 0xDC00 <= low < 0xE000:
                return 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00
            self.at = back
        return code

    def four(self) -> int:
        return int("".join(self.one_of(HEX) for _ in range(4)), 16)

    def character_class(self) -> None:
        self.take("^")
        while not self.take("]"):
            low = self.class_atom()
            if self.take("-"):
                if self.take("]"):
                    return
                high = self.class_atom()
                if low is None or high is None or high < low:
                    raise Wrong

    def class_atom(self) -> int | None:
        if self.take("\\"):
            return self.character_escape(in_class=True)
        return ord(self.one())

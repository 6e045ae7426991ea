r"""Formats of the Internet: addresses, host names, e-mail, URIs, IRIs and URI templates.

Sources: RFC 5321 and 6531 (e-mail), RFC 1123 (host names), RFC 2673 and 4291 (addresses), RFC 3986 (URI), RFC 3987
(IRI), RFC 6570 with erratum 6937 (templates).
"""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.formats.host_names import LABEL
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import Expr, alternation, concat

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6_pattern() -> str:
    group = "[0-9A-Fa-f]{1,4}"
    last = f"(?:{group}:{group}|{_IPV4})"
    options = [f"(?:{group}:){{6}}{last}"]
    for before in range(8):
        head = f"(?:{group}(?::{group}){{0,{before - 1}}})?" if before else ""
        after = 7 - before  # groups that may follow the double colon, at most, when `before` stand in front of it
        tails = [f"{head}::"]
        if after >= 1:
            tails.append(f"{head}::(?:{group}:){{0,{after - 1}}}{group}")
        if after >= 2:
            tails.append(f"{head}::(?:{group}:){{0,{after - 2}}}{_IPV4}")
        options.extend(tails)
    return "(?:" + "|".join(options) + ")"


@lru_cache(maxsize=1)
def ipv4() -> Expr:
    """RFC 2673, section 3.2."""
    return pattern_language(_IPV4)


@lru_cache(maxsize=1)
def ipv6() -> Expr:
    """RFC 4291, section 2.2."""
    return pattern_language(_ipv6_pattern())


_ATOM = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_QUOTED = r'"(?:[ !#-\[\]-~]|\\[ -~])*"'


@lru_cache(maxsize=1)
def email() -> Expr:
    """RFC 5321."""
    literal = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6_pattern()})\]"
    local = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})"
    return pattern_language(rf"{local}@(?:{LABEL}(?:\.{LABEL})*|{literal})")


def _uri_pattern(more: str = "", private: str = "") -> tuple[str, str]:
    """Patterns of an absolute URI and of a relative reference (RFC 3986, appendix A).

    ``more`` are characters that are unreserved too, ``private`` such in the query only, both for a class.
    """
    unreserved = f"A-Za-z0-9._~{more}"
    escaped = "%[0-9A-Fa-f]{2}"
    letter = f"(?:[{unreserved}!$&'()*+,;=:@-]|{escaped})"
    no_colon = f"(?:[{unreserved}!$&'()*+,;=@-]|{escaped})"
    user = f"(?:[{unreserved}!$&'()*+,;=:-]|{escaped})*@"
    future = "[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+"
    name = f"(?:[{unreserved}!$&'()*+,;=-]|{escaped})*"
    host = rf"(?:\[(?:{_ipv6_pattern()}|{future})\]|{name})"
    authority = f"//(?:{user})?{host}(?::[0-9]*)?(?:/{letter}*)*"
    absolute = f"/(?:{letter}+(?:/{letter}*)*)?"
    query = f"(?:{letter}|[/?{private}])*"
    tail = rf"(?:\?{query})?(?:#(?:{letter}|[/?])*)?"
    scheme = "[A-Za-z][A-Za-z0-9+.-]*:"
    full = f"{scheme}(?:{authority}|(?:{absolute}|{letter}+(?:/{letter}*)*)?){tail}"
    return full, f"(?:{authority}|(?:{absolute}|{no_colon}+(?:/{letter}*)*)?){tail}"


@lru_cache(maxsize=1)
def uri() -> Expr:
    """RFC 3986."""
    return pattern_language(_uri_pattern()[0])


@lru_cache(maxsize=1)
def uri_reference() -> Expr:
    """RFC 3986."""
    full, relative = _uri_pattern()
    return pattern_language(f"{full}|{relative}")


_UCS = (
    "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
    + f"{chr(0xE1000)}-{chr(0xEFFFD)}"
)
"""Characters that an IRI may have beyond those of a URI (``ucschar``), for a class."""
_PRIVATE = f"\ue000-\uf8ff{chr(0xF0000)}-{chr(0xFFFFD)}{chr(0x100000)}-{chr(0x10FFFD)}"
"""The same for its query (``iprivate``)."""


@lru_cache(maxsize=1)
def iri() -> Expr:
    """RFC 3987."""
    return pattern_language(_uri_pattern(_UCS, _PRIVATE)[0])


@lru_cache(maxsize=1)
def iri_reference() -> Expr:
    """RFC 3987."""
    full, relative = _uri_pattern(_UCS, _PRIVATE)
    return pattern_language(f"{full}|{relative}")


@lru_cache(maxsize=1)
def uri_template() -> Expr:
    """RFC 6570 with erratum 6937, which allows the apostrophe."""
    escaped = "%[0-9A-Fa-f]{2}"
    text = rf"(?:[!#$&-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{escaped})"
    letter = f"(?:[A-Za-z0-9_]|{escaped})"
    variable = rf"{letter}(?:\.?{letter})*(?::[1-9][0-9]{{0,3}}|\*)?"
    return pattern_language(rf"(?:{text}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*")


@lru_cache(maxsize=1)
def idn_email() -> Expr:
    """RFC 6531; of labels beyond ASCII in the domain, that which is regular in IDNA."""
    from guided.grammar.formats.idna_labels import Kind
    from guided.grammar.formats.idna_languages import names

    beyond = f"\u0080-{chr(0x10FFFF)}"
    atom = f"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{beyond}-]+"
    quoted = rf'"(?:[ !#-\[\]-~{beyond}]|\\[ -~])*"'
    literal = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_ipv6_pattern()})\]"
    local = pattern_language(rf"(?:{atom}(?:\.{atom})*|{quoted})@")
    return concat(local, alternation((names(Kind.MAIL), pattern_language(literal))))

r"""Names in patterns of ECMA-262: what stands in the braces of ``\p{...}``, and what names of groups are made of.

Of properties names only, case counts; the characters that have them are not here.  Sources: Unicode Standard Annex 31
(identifiers); ECMA-262, tables "Non-binary Unicode property aliases" and "Binary Unicode property aliases";
PropertyValueAliases.txt of Unicode 15.0 for the values.
"""

from __future__ import annotations

from functools import lru_cache

from guided.grammar.regex.unicode_sets import unicode_property
from guided.grammar.regular.characters import CharacterSet, intersect, negate, normalise

_CATEGORIES = """
    Cased_Letter LC Close_Punctuation Pe Connector_Punctuation Pc Control Cc cntrl Currency_Symbol Sc Dash_Punctuation
    Pd Decimal_Number Nd digit Enclosing_Mark Me Final_Punctuation Pf Format Cf Initial_Punctuation Pi Letter L
    Letter_Number Nl Line_Separator Zl Lowercase_Letter Ll Mark M Combining_Mark Math_Symbol Sm Modifier_Letter Lm
    Modifier_Symbol Sk Nonspacing_Mark Mn Number N Open_Punctuation Ps Other C Other_Letter Lo Other_Number No
    Other_Punctuation Po Other_Symbol So Paragraph_Separator Zp Private_Use Co Punctuation P punct Separator Z
    Space_Separator Zs Spacing_Mark Mc Surrogate Cs Symbol S Titlecase_Letter Lt Unassigned Cn Uppercase_Letter Lu
"""
_SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo
    Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee Chorasmian Common
    Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs
    Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi Gurmukhi Han Hangul
    Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi
    Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki
    Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean
    Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi
    Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong
    Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian
    Old_Turkic Old_Uyghur Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi
    Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese
    Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan
    Tifinagh Tirhuta Toto Ugaritic Unknown Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
    Adlm Hluw Arab Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cans Cari Aghb Cakm Cher Chrs Zyyy
    Copt Qaac Xsux Cprt Cpmn Cyrl Dsrt Deva Diak Dogr Dupl Egyp Elba Elym Ethi Geor Glag Goth Gran Grek Gujr Gong Guru
    Hani Hang Rohg Hano Hatr Hebr Hira Armi Zinh Qaai Phli Prti Java Kthi Knda Kana Kali Khar Kits Khmr Khoj Sind Laoo
    Latn Lepc Limb Lina Linb Lyci Lydi Mahj Maka Mlym Mand Mani Marc Gonm Medf Mtei Mend Merc Mero Plrd Mong Mroo Mult
    Mymr Nbat Nagm Nand Talu Nkoo Nshu Hmnp Ogam Olck Hung Ital Narb Perm Xpeo Sogo Sarb Orkh Ougr Orya Osge Osma Hmng
    Palm Pauc Phag Phnx Phlp Rjng Runr Samr Saur Shrd Shaw Sidd Sgnw Sinh Sogd Sora Soyo Sund Sylo Syrc Tglg Tagb Tale
    Lana Tavt Takr Taml Tnsa Tang Telu Thaa Tibt Tfng Tirh Ugar Vaii Vith Wcho Wara Yezi Yiii Zanb Zzzz
"""
_BINARY = """
    ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Assigned Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI
    Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM Changes_When_Lowercased CWL
    Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod
    Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base Gr_Base
    Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS
    Ideographic Ideo Join_Control Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar
    Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Regional_Indicator RI
    Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo Uppercase Upper
    Variation_Selector VS White_Space space XID_Continue XIDC XID_Start XIDS
"""


@lru_cache(maxsize=1)
def property_expressions() -> frozenset[str]:
    r"""Every text that may stand between the braces."""
    categories = _CATEGORIES.split()
    scripts = _SCRIPTS.split()
    found = {*categories, *_BINARY.split()}
    found.update(f"{name}={value}" for name in ("General_Category", "gc") for value in categories)
    found.update(f"{name}={value}" for name in ("Script", "sc", "Script_Extensions", "scx") for value in scripts)
    return frozenset(found)


_STARTS = ("L", "Nl")
_PARTS = (*_STARTS, "Mn", "Mc", "Nd", "Pc")
_OTHER_STARTS = ((0x24, 0x24), (0x5F, 0x5F), (0x1885, 0x1886), (0x2118, 0x2118), (0x212E, 0x212E), (0x309B, 0x309C))
_OTHER_PARTS = ((0xB7, 0xB7), (0x387, 0x387), (0x1369, 0x1371), (0x19DA, 0x19DA), (0x200C, 0x200D))
_NEITHER = ((0x2E2F, 0x2E2F),)
"""The one letter that belongs to Pattern_Syntax."""


@lru_cache(maxsize=1)
def name_starts() -> CharacterSet:
    """The characters with which the name of a group may begin, by this interpreter's Unicode."""
    return _of_categories(_STARTS, _OTHER_STARTS)


@lru_cache(maxsize=1)
def name_parts() -> CharacterSet:
    """The characters with which it may go on."""
    return _of_categories(_PARTS, (*_OTHER_STARTS, *_OTHER_PARTS))


def _of_categories(wanted: tuple[str, ...], others: CharacterSet) -> CharacterSet:
    found = (pair for name in wanted for pair in unicode_property(name, ""))
    return intersect(normalise([*found, *others]), negate(_NEITHER))

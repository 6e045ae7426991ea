"""The word lists that names and values are made of, and the rule that reserves words for evaluation.

Not a grammar of English: just enough nouns, attributes and proper names that a model cannot learn them by heart and has
to copy them from its prompt.  Which words are held out is a property of the word itself (a hash of its letters), so the
training and evaluation vocabularies are disjoint by construction, made-up words included.
"""

# ruff: noqa: SIM905  (word lists are read as text)
from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

__all__ = [
    "ATTRIBUTES",
    "CITIES",
    "DATES",
    "FAMILIAR",
    "FIRST_NAMES",
    "FLAGS",
    "HELD_OUT",
    "LAST_NAMES",
    "LOOSE_WORDS",
    "MEASURES",
    "NOUNS",
    "TRAINING",
    "Lexicon",
    "is_held_out",
    "made_up_word",
    "pick",
]

HELD_OUT_SHARE = 4
"""One word in this many is kept for evaluation."""

FAMILIAR = frozenset(
    "id name first last full title age city country email phone price salary year date status amount quantity total "
    "company department category address street active score rating weight height description employee customer "
    "order product book student teacher movie author invoice item user team player project".split()
)
"""Everyday names that any user's schema will hold; always in the training set, never in the held-out names."""

NOUNS = """
account actor address agent airline airport album animal article artist asset auction author badge bakery bank band
barn battery bicycle bill boat book booking bottle branch bridge broker budget building bus cabin cable camera
campaign candidate car cargo carrier castle catalog cell channel chapter charity chef church cinema circuit citizen
claim class client clinic club coach coin college colony comment company complaint component concert contract cottage
course court crater crew crop customer dam dancer dealer delivery department deposit desk device diary diner director
dish district doctor document dog donor drawing driver drone election employee engine engineer episode event exam
exhibit expedition factory farm farmer ferry festival field file film fish flight flower folder forest formula fossil
founder freight fridge fruit fund gadget gallery game garage garden gate gear glacier goal grade grant graph guard
guest guide guitar habitat hall harbor hazard herd highway hospital hotel house hunter idea image inspection inspector
institute insurer investor invoice island item jacket jewel job journal journey judge jury kennel kitchen lab lake
lamp language lawyer league lecture lens lesson letter library license lighthouse loan location locker machine
magazine manager manuscript map market match meal medal meeting member mentor menu merchant message meteor meter mine
mineral mission mobile model monument mountain movie museum musician nation network newspaper note novel nurse office
officer orchard order orchestra outlet owner package painter painting paper parcel park parking partner passenger
patent patient payment permit person photo piano pilot pipeline planet plant platform player playlist plaza poem poet
policy pond port poster printer prison prize product professor program project property protein pupil quarry query
quest quilt quiz quote race radio railway ranch recipe record referee refund region rental repair report reservation
resident restaurant review rider river road robot rocket room route runner sailor sale sample satellite scene school
scientist sculpture season seat sector seed seller seminar sensor server session shelf shelter shift ship shipment
shop singer site sketch skill soldier song spice sponsor stadium station statue store storm story street student
studio supplier surgeon survey swimmer table talk tank task teacher team telescope temple tenant tender theater ticket
tool tournament tower town toy track trader trail trainer train tram transfer tree trial tribe trip truck tunnel tutor
user vaccine valley van vehicle vendor venue vessel village vineyard virus visitor volcano voter voyage wallet
warehouse well whale wheel window winery witness worker workshop writer
""".split()

ATTRIBUTES = """
name title city country email phone status category description color brand style genre kind group label code region
county nationality hometown gender role rank position party occupation species breed material flavor fabric finish
theme language dialect currency method mode format edition publisher maker vendor origin destination source target
sponsor manager leader captain owner founder director mentor editor author surname nickname alias motto slogan comment
remark summary topic subject field major faculty campus building wing floor zone district province state continent
ocean climate terrain habitat diet symptom diagnosis treatment allergy insurance plan policy clause outcome verdict
result phase stage tier grade band segment channel medium carrier gate terminal platform track lane route model engine
fuel gearbox chassis trim texture pattern shape scent cuisine dish ingredient sauce garnish vintage grape cellar
orchard soil crop fertilizer instrument tempo key mood lyric composer conductor venue stadium arena league division
conference coach referee mascot sport discipline weapon armor spell element alloy crystal mineral metal polymer
solvent reagent catalyst enzyme protein gene organ tissue cell strain vaccine nurse surgeon ward clinic department
office team unit squad troop fleet vessel harbor port dock cargo container parcel courier warehouse shelf aisle bin
rack drawer folder archive volume chapter verse genus family tribe clan dynasty era epoch religion festival holiday
ceremony costume dance mask tool gadget device sensor protocol firmware driver kernel license version branch
repository tag topic badge medal prize honor degree diploma certificate
""".split()

MEASURES = """
age price salary year amount quantity total score rating weight height length width depth distance duration speed
capacity budget revenue profit cost tax discount balance fee fare rent wage bonus income debt credit limit quota stock
supply demand output yield volume area population density temperature pressure humidity voltage power energy frequency
mileage altitude elevation radius diameter thickness angle slope latency throughput bandwidth storage memory points
goals wins losses draws assists fouls laps rounds attempts votes visits views clicks likes shares downloads followers
members seats rooms beds floors pages words copies episodes seasons tracks calories protein sugar sodium fiber
caffeine dosage pulse strength stamina dexterity luck experience damage range accuracy reach tolerance margin count
level index ratio share percentage attendance enrollment turnover expenses savings deposit premium penalty horsepower
torque torsion emission consumption rainfall snowfall visibility magnitude brightness luminosity mass
""".split()

DATES = """
date birthday deadline start end arrival departure checkin checkout founded opened closed hired joined created updated
released published issued expires delivered shipped ordered paid born married graduated retired launched landed signed
inspected repaired visited enrolled registered approved rejected scheduled completed harvested planted
""".split()

FLAGS = """
active available verified premium public archived insured certified organic vegan fragile urgent refundable taxable
licensed approved blocked hidden locked open paid remote seasonal vaccinated wireless waterproof portable renewable
digital electric furnished heated occupied reserved retired sealed signed sponsored subscribed tested trained married
domestic foreign imported exported damaged fertile edible toxic nocturnal extinct rare
""".split()

FIRST_NAMES = """
Anna Ben Carla David Elena Felix Grace Hugo Irene Jack Karin Liam Maria Noah Olga Peter Quinn Rosa Samuel Tara Ulrich
Vera William Xenia Yusuf Zoe Ada Alan Alice Amir Astrid Beth Boris Brigitte Carlos Cecilia Chen Chloe Dana Diego Dora
Edgar Emma Erik Fatima Fiona Frank Gita Gustav Hana Harold Helen Ines Ivan Ivy Jamal Jane Jonas Joan Julia Kamal Keiko
Kenji Lara Leo Linda Louis Lucia Magnus Mei Mila Mohamed Mona Nadia Nils Nina Omar Oscar Pablo Paula Priya Rahul Ravi
Rita Robert Ruth Sara Sofia Stefan Sven Tariq Thomas Tina Uma Victor Wanda Wei Yara Yuki Zara Grant Ellis Marta Otto
""".split()

LAST_NAMES = """
Smith Jones Brown Taylor Wilson Evans Walker Wright Green Hall Wood Clarke Hughes Lewis Young Baker Carter Turner
Parker Cooper Morris Bell Ward Hill Moore Clark Lee Scott Adams Mitchell Campbell Anderson Garcia Lopez Perez Gomez
Diaz Cruz Rossi Bianchi Ferrari Ricci Marino Greco Muller Schmidt Weber Fischer Becker Koch Wolf Klein Braun Hofmann
Novak Svoboda Dvorak Kowalski Nowak Petrov Ivanov Sokolov Popov Orlov Tanaka Suzuki Sato Yamada Mori Kim Park Choi
Nguyen Tran Pham Singh Patel Sharma Gupta Khan Ahmed Hassan Ali Okafor Mensah Diallo Larsen Hansen Nielsen Berg Lind
Dahl Olsen Virtanen Lovelace Turing Hopper Curie Noether Euler Gauss Byron Keller Stone Rivers Marsh Fields Brooks
Woods Banks Frost Snow
""".split()

CITIES = """
London Paris Berlin Madrid Rome Vienna Oslo Stockholm Helsinki Copenhagen Dublin Lisbon Prague Warsaw Budapest Athens
Sofia Zurich Geneva Basel Munich Hamburg Cologne Lyon Nice Turin Milan Naples Venice Porto Seville Valencia Bilbao
Cairo Tunis Lagos Accra Nairobi Lima Quito Bogota Santiago Havana Boston Chicago Denver Dallas Austin Seattle Portland
Phoenix Toronto Montreal Ottawa Sydney Perth Auckland Tokyo Osaka Kyoto Seoul Busan Taipei Hanoi Bangkok Jakarta
Manila Mumbai Delhi Chennai Dhaka Karachi Tehran Ankara Izmir Beirut Amman Doha Dubai Riga Tallinn Vilnius Minsk Kyiv
Odessa Norway Sweden Finland Denmark Iceland Ireland Spain Portugal France Germany Italy Austria Poland Greece Turkey
Egypt Kenya Ghana Nigeria Morocco Brazil Peru Chile Cuba Mexico Canada Japan Korea China India Nepal Vietnam Thailand
Bergen Malmo Aarhus
""".split()

LOOSE_WORDS = """
red blue green yellow black white silver golden amber crimson violet scarlet large small tiny huge heavy light fast
slow cheap basic standard deluxe express classic modern vintage rustic urban rural coastal northern southern eastern
western wooden steel copper bronze leather cotton silk wool paper glass stone plastic ceramic jazz rock opera folk
blues techno comedy drama thriller romance fantasy mystery horror western biology physics chemistry history geology
algebra poetry open closed pending shipped returned cancelled draft final approved rejected paid overdue high medium
low critical minor major daily weekly monthly yearly summer winter spring autumn morning evening lamp chair table sofa
desk kettle mug plate spoon hammer drill saw wrench ladder rope tent stove lantern compass backpack helmet glove scarf
sweater jacket boots laptop tablet monitor keyboard mouse router cable printer scanner speaker camera tripod drone
battery charger apple pear plum cherry mango lemon olive almond walnut barley wheat rice oats maize coffee tea cocoa
honey butter cheese bread soup salad pasta pizza curry noodle steak salmon trout tuna cod shrimp tiger lion zebra
otter badger falcon eagle heron robin engineering marketing finance sales support legal research design security
operations logistics training quality premium
""".split()

ONSETS = "b br c ch cl d dr f fl g gl gr h j k kr l m n p pl pr qu r s sh sk sl sn st t th tr v w z".split()
VOWELS = "a e i o u ai ea io ou a e i o u".split()
CODAS = ["", "", "", "n", "r", "l", "s", "t", "m", "nd", "rk", "x", "ck", "lt", "sh"]


def is_held_out(word: str) -> bool:
    """Whether a word belongs to the evaluation vocabulary; case does not matter."""
    lower = word.lower()
    return lower not in FAMILIAR and zlib.crc32(lower.encode()) % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class Lexicon:
    """A side of the split; of the words picked from a list, the share ``novelty`` is replaced by words never seen."""

    held_out: bool
    novelty: float = 0.0


TRAINING = Lexicon(False)
HELD_OUT = Lexicon(True)


def made_up_word(rng: random.Random, lexicon: Lexicon) -> str:
    """A pronounceable word of two or three syllables from the wanted side of the split."""
    while True:
        word = "".join(
            rng.choice(ONSETS) + rng.choice(VOWELS) + (rng.choice(CODAS) if last else "")
            for last in ([False, True] if rng.random() < 0.7 else [False, False, True])
        )
        if is_held_out(word) == lexicon.held_out:
            return word


def _spliced_word(rng: random.Random, lexicon: Lexicon) -> str:
    """The head of one word and the tail of another: letters in the sequences of real words, in no word of a list."""
    while True:
        head, tail = (rng.choice(rng.choice((NOUNS, ATTRIBUTES, MEASURES, LOOSE_WORDS, LAST_NAMES))) for _ in range(2))
        word = (head[: rng.randint(2, max(2, len(head) - 1))] + tail[-rng.randint(2, max(2, len(tail) - 1)) :]).lower()
        if len(word) <= 12 and is_held_out(word) == lexicon.held_out and word not in _LISTED:
            return word


_LISTED = frozenset(
    word.lower()
    for listed in (NOUNS, ATTRIBUTES, MEASURES, DATES, FLAGS, FIRST_NAMES, LAST_NAMES, CITIES, LOOSE_WORDS)
    for word in listed
)


def _has_training_twin(word: str) -> bool:
    """Whether the singular or plural of a held-out word is a training word: table names come in both."""
    return any(
        twin in words and not is_held_out(twin)
        for twin in (word + "s", word.removesuffix("s"))
        for words in (NOUNS, ATTRIBUTES, MEASURES, DATES, FLAGS)
        if twin != word
    )


_SPLIT: dict[tuple[int, bool], list[str]] = {}


def pick(rng: random.Random, words: list[str], lexicon: Lexicon) -> str:
    """One word of a list from the wanted side of the split, or by chance a new one in its place."""
    if lexicon.novelty and rng.random() < lexicon.novelty:
        word = (made_up_word if rng.random() < 0.5 else _spliced_word)(rng, lexicon)
        return word.capitalize() if words[0][0].isupper() else word
    key = (id(words), lexicon.held_out)
    if key not in _SPLIT:
        chosen = [word for word in words if is_held_out(word) == lexicon.held_out]
        _SPLIT[key] = [word for word in chosen if not (lexicon.held_out and _has_training_twin(word))]
    return rng.choice(_SPLIT[key])

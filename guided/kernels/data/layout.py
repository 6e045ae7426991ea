"""The flat arrays that kernels share: what each holds.  What kernels ask for is in `guided.kernels.data.requests`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Automaton(NamedTuple):
    """The lexer states of a process: a lazily grown byte automaton, state 0 is dead.

    ``first[x] < 0``: the edges of ``x`` are not known yet.  Edges of ``x`` are ``first[x] .. first[x] + count[x]``,
    sorted by byte: ``low..high`` leads to ``target``.  ``tag[x] >= 0``: a match may end in ``x`` (the tag is the
    terminal for lexers, else 0).  ``pending[x]``: the state of matches that would be preferred to the one that ends
    here, 0 for none.  ``also[x]``: another state that only says how else a match may end here (look-aheads still to be
    decided), 0 for none.  ``loops[x]``: worth caching a vocabulary's token effect, 2 when every grammar has it.
    ``minimum[x]``: fewest bytes to the end of a match, ``widest[x]``: the most that ``minimum`` is in any state reached
    from ``x``; -1 until asked for.

    ``mode[x]`` has bit `STRING` for the inside of a JSON string: its edges read the text's UTF-8, and
    `guided.kernels.lexing.strings` reads the spelling; bit `CLOSES` when the string may end here, bit `CANONICAL` when
    only one spelling counts.  Inside an escape, ``decode[x]`` says what of it was read and ``base[x]`` is the state
    before it; elsewhere ``decode[x] = 0`` and ``base[x] = x``. ``owes[x]``: a state with which ``base[x]`` goes on as
    an obligation (a run of characters that must not be one of some words), 0 for none.  ``partials`` finds states
    inside escapes by hash of (base, decode). ``closed[x]``: the classes of bytes (`guided.kernels.lexing.byte_classes`)
    on all of which ``x`` leads back to itself.  ``bound[x]`` > 0: of a repetition, each a byte at least, so many may
    still come, and ``boundless[x]`` is the same state without that bound.
    """

    first: Ints
    count: Ints
    low: Bytes
    high: Bytes
    target: Ints
    tag: Ints
    pending: Ints
    also: Ints
    loops: Bytes
    minimum: Ints
    widest: Ints
    mode: Bytes
    base: Ints
    decode: Ints
    owes: Ints
    partials: Ints
    closed: Longs
    boundless: Ints
    bound: Ints


class Parts(NamedTuple):
    """Parts, and the sets of them that states are.

    The parts of state ``x`` are ``pool[set_first[x] : set_first[x] + set_count[x]]``, ascending; ``set_first[x] < 0``:
    not known, or not made of parts.  ``set_hash`` finds the states of sets of several parts, ``alone[p]`` is the one of
    a part by itself (0: none yet).  Edges of part ``p``: ``edge_first[p] .. edge_first[p] + edge_count[p]``, -1 where
    they are not known; ``low..high`` leads to the part ``to``, several to several parts.  ``bound[p]`` and
    ``boundless[p]`` as of states.  ``asked[x]``, ``met[p]`` and ``work`` are working memory; ``counts``, ``queue``,
    ``firsts``, ``missing`` and ``given`` are arguments and results of a call.

    Parts that follow from numbers (`guided.kernels.lexing.part_pairs`): ``one[p]`` and ``other[p]`` are those of a
    pattern and of a run, or -1 less a symbol and the part behind it, ``fewest[p] .. most[p]`` times the symbol (-1: any
    number; both 0: what is left of it once); they are found by chains from ``chain_first`` by way of ``chain_next``,
    each number and 1.  Symbols, and what may be left of them, are rows ``symbol_low .. symbol_high`` that lead to the
    rest ``symbol_to``, -1 where nothing is left.  ``spans`` and ``symbol_spans``: four numbers for each part and
    symbol.
    """

    set_first: Ints
    set_count: Ints
    asked: Ints
    pool: Ints
    set_hash: Ints
    edge_first: Ints
    edge_count: Ints
    traits: Ints
    alone: Ints
    boundless: Ints
    bound: Ints
    met: Ints
    low: Bytes
    high: Bytes
    to: Ints
    work: Ints
    counts: Longs
    queue: Ints
    firsts: Ints
    missing: Ints
    given: Ints
    class_of_byte: Longs
    one: Ints
    other: Ints
    fewest: Ints
    most: Ints
    chain_first: Ints
    chain_next: Ints
    spans: Ints
    symbol_first: Ints
    symbol_count: Ints
    symbol_flags: Ints
    symbol_spans: Ints
    symbol_low: Bytes
    symbol_high: Bytes
    symbol_to: Ints


class Rules(NamedTuple):
    """The rule graph of one grammar: nodes with edges that read a terminal, call a rule or read nothing.

    ``node_first[n] < 0``: not lowered yet.  ``flags[n]`` has bit `FINAL` when the rule may end at ``n`` (also through
    empty edges) and `OPEN` when something may still be read from it.  Edge ``argument``: automaton start state for
    `READ`, rule for `CALL`.  ``rank`` orders rules so that a rule's leftmost callees come after it.  ``ignored`` are
    start states of terminals that may stand between any two others.  ``met`` is the stamp of the search that a node was
    last met in.
    """

    node_first: Ints
    node_count: Ints
    flags: Bytes
    met: Longs
    kind: Bytes
    argument: Ints
    to: Ints
    label: Ints
    rule_start: Ints
    rank: Ints
    ignored: Ints


class Lalr(NamedTuple):
    """LALR tables as rows of ``terminal -> action`` and ``nonterminal -> state``; empty for other grammars.

    ``last`` is ``(final state, end of text)``.  ``action[state, terminal]``: 0 error, ``s + 1`` shift to ``s``,
    ``-(r + 1)`` reduce by rule ``r``.  The candidates of a state's lexer are ``context[context_first[state] :
    context_first[state + 1]]``.  Lexers by LALR state and the set of terminals that the parser accepts, 64 a word,
    ignored ones among them: ``opening_slot`` finds a row by hash, -1 where there is none, ``opening_start[row]`` is
    the lexer state.

    For masks (`guided.kernels.masking.lexed`): ``start[state]`` is the lexer of all candidates of an LALR state;
    ``under_key`` finds by hash the lexer state ``under_state`` that goes on from ``state << 28 | obligation``, 0 where
    there is none. ``verdict[x]``: the row of lexer state ``x``, in ``frees`` the terminals of which one must be
    accepted so that a token may end in ``x``, in ``debts`` those with which it may where what is owed can be settled.
    -1: not known yet.

    Under token budgets (`guided.automata.lalr.closings`): ``rest_row[x]`` is the row of lexer state ``x``, -1 where it
    is not known, ``rests[rest_first[row] : rest_first[row + 1]]`` are terminals ``<< 32`` and the bytes that are enough
    to end them, the nearest first.  ``pair_key`` finds by hash, from the state below plus one (0: none) ``<< 28`` and
    the one above plus one, the row ``pair_row`` of how the upper one is left, each way as ``(nonterminal + 1) << 48``,
    the states popped ``<< 32`` and the bytes that are enough: ``ways[way_first[row] : way_first[row + 1]]``.
    """

    action: NDArray[np.int32]
    goto: NDArray[np.int32]
    rule_name: Ints
    rule_length: Ints
    last: Ints
    context_first: Ints
    context: Ints
    is_ignored: Bytes
    opening_slot: Ints
    opening_state: Ints
    opening_live: NDArray[np.int64]
    opening_start: Ints
    start: Ints
    under_key: Longs
    under_state: Ints
    verdict: Ints
    frees: NDArray[np.int64]
    debts: NDArray[np.int64]
    rest_row: Ints
    rest_first: Ints
    rests: Longs
    pair_key: Longs
    pair_row: Ints
    way_first: Ints
    ways: Longs


class Machine(NamedTuple):
    """The append-only tables of one compiled constraint.

    Continuations (``set_*``): a continuation is a sorted set of ``items``, each ``node << 32 | continuation to return
    to``; id 0 is empty, id 1 holds only the item 0, which says that the text may end.  With LALR tables an item list
    has one entry, ``state + 1 << 32 | stack below``.  ``closure_*``: per continuation the terminals that may come next,
    as ``(automaton state, continuation after it, label)``.  States (``state_*``): sets of threads
    ``(automaton state or 0 at a boundary, continuation, obligation)``; id 0 is dead, 1 is after the end of text.

    In continuations of more than `MOST_ITEMS` items one node stands for all that return to the same: of the nodes that
    are listed, each ``<< 32``, as the set ``k``, ``composed[k]`` is that node, 0 where it is not known yet.  Of pairs
    that were settled it is the continuation that they make.

    Under token budgets (`guided.kernels.parsing.costs`): ``cost[k]`` tokens are enough to end the text from a
    continuation, ``reach[k]`` from anywhere inside a terminal behind which ``k`` comes (-1: not known),
    ``node_cost[n]`` lead from a node to the end of its rule (-1: not known yet).
    """

    set_offset: Ints
    items: Longs
    set_hash: Ints
    closure_first: Ints
    closure_count: Ints
    closure_state: Ints
    closure_next: Ints
    closure_label: Ints
    state_offset: Ints
    thread_state: Ints
    thread_next: Ints
    thread_obligation: Ints
    state_hash: Ints
    composed: Ints
    cost: Ints
    reach: Ints
    node_cost: Ints


class Scratch(NamedTuple):
    """Working memory of one constraint; contents mean nothing between calls."""

    longs: Longs
    more: Longs
    calls: Longs
    call_rules: Ints
    emits: Longs
    emit_states: Longs
    emit_labels: Ints
    thread_a: Longs
    thread_b: Ints
    thread_c: Longs
    thread_d: Ints
    tasks: Longs
    visited: Longs
    united: Longs
    walk_state: Longs
    walk_similar: Longs
    walk_obligation: Ints
    walk_end: Ints
    walk_behind: Ints
    walk_fan: Ints
    walk_way: Ints
    listed: Longs
    closings: Ints


class Tokens(NamedTuple):
    """A pool of tries over (rests of) token bytes, in preorder: the vocabulary's own first, then exit tries.

    The children of a range ``[lo, hi)`` are ``lo, end[lo], end[end[lo]], ... < hi``, sorted by ``byte``.
    ``fan[lo]`` > 0, for ranges with many children: row ``fan[lo] - 1`` of ``children`` has the child for each byte, 0
    for none.  ``classes[n]``: the classes of a node's byte and all bytes below it, as of a text that begins there.
    ``height[n]``: the most bytes to the end of a token at or below a node, its own among them; 255 for more.
    """

    byte: Bytes
    end: Ints
    token_offset: Ints
    token_ids: Ints
    fan: Ints
    children: NDArray[np.int32]
    classes: Longs
    height: Bytes


class Effects(NamedTuple):
    """What all tokens of a trie range do from one automaton state, for the states that were asked about.

    Found by hash of (range, state).  ``mask``: row of ``masks`` with the tokens after which the match goes on or
    ends, `WALKED` where there is no effect, -1 when those tokens are listed in ``listed[list_first : list_first +
    list_count]``.  Exits: ``exit_*`` gives the trie range of what is left of tokens in which the match ends, with the
    terminal and obligation.

    Where the parser must be asked about tokens that end inside a terminal (`guided.kernels.masking.lexed`), all of an
    effect end in states about which it is asked the same, such as ``ends_in``; ``more`` is the effect with others of
    the same range, -1 after the last.
    """

    hash_slot: Ints
    key_low: Ints
    key_high: Ints
    key_state: Ints
    mask: Ints
    list_first: Ints
    list_count: Ints
    exit_first: Ints
    exit_count: Ints
    masks: NDArray[np.uint32]
    listed: Ints
    exit_low: Ints
    exit_high: Ints
    exit_tag: Ints
    exit_pending: Ints
    ends_in: Ints
    more: Ints


class Segments(NamedTuple):
    """What a constraint allows of some trie ranges from a boundary or a lexer state, for ranges that are met again.

    Found by hash of ``key`` = ``low << 32 | continuation``, or ``state`` with a bit that says so: the tokens
    ``tokens[first : first + count]``, and among them what follows (`guided.kernels.masking.segments`). ``need`` tokens
    are enough to end the text after any of them, where a boundary was priced as it was left.
    """

    hash_slot: Ints
    key: Longs
    first: Ints
    count: Ints
    tokens: Ints
    need: Ints


class Extra(NamedTuple):
    """What else a constraint's kernels use: counters, joined obligations, mask rows, the tokens' bytes, an answer.

    ``joined`` finds by hash, as rows ``(key, answer)``, the obligation that holds when two do, by ``low << 32 | high``,
    and whether one forbids whatever another does, by ``-(one << 32 | other)``; key 0: none.  ``text`` is bytes to be
    read that are no token's; ``marked``, by rule, are those of `guided.kernels.parsing.marks`; ``weights``: by which
    the words of a row are summed to its fingerprint (`guided.constraint.effects.shared_rows`). By lexer state in which
    a terminal begins, 0 where not known: ``fewest`` tokens are enough for the terminal, ``farthest`` for what is left
    of it after any token that ends inside it.
    """

    counters: Longs
    joined: NDArray[np.int64]
    rows: NDArray[np.uint32]
    token_data: Bytes
    token_offsets: Longs
    bytes_out: Bytes
    text: Bytes
    marked: Bytes
    weights: NDArray[np.uint32]
    fewest: Ints
    farthest: Ints


ENDS = 1
"""The item that lets the text end: node 0, returning to continuation 1, which holds just this item."""

DEAD, FINISHED = 0, 1
"""The state after a refused token, and the state after an end-of-text token."""

MATCHED = 1
"""The lexer state after the closing quote of a JSON string: a match ends, and nothing follows inside."""

STRING, CLOSES, CANONICAL = 1, 2, 4

EXAMINED = 1 << 62
"""Set in ``closed``, above all classes, once it was examined whether a state leads back on characters above ASCII."""

READ, CALL, EMPTY = 0, 1, 2
FINAL, OPEN = 1, 2

FAR = 1 << 28
"""More tokens or bytes than any budget: what cannot finish, or is not known to."""

# Slots of `counters`.
N_SETS, N_ITEMS, N_CLOSURE, N_STATES, N_THREADS, N_PRICED = range(6)
FUEL, STAMP, OWING, N_SEGMENTS, N_SEGMENT_TOKENS, SHARES, NOTED, LONGEST = range(6, 14)
PRICES, N_REACHED, NEED, FARTHEST, N_LISTED, MOST_ITEMS, N_LOCAL = range(14, 21)
N_KEPT, KEPT_AS = range(21, 23)
N_COUNTERS = 23

WALKED = -2
"""In the place of an effect's row: its tokens come to owe something, so they are walked with the parser."""

ANY, LISTED = -1, -2
"""In the place of a limit: tokens are taken whatever they cost, or listed with their prices."""

MOST_ROWS = 64
"""Rows of the mask and its shares, each nested in one token, that there are at the most."""

"""Whoever asked first has the lock first."""

from __future__ import annotations

import threading
import time

from guided.hf.turns import Turns


def test_threads_have_it_in_the_order_of_asking() -> None:
    turns, order = Turns(), list[int]()

    def work(number: int) -> None:
        with turns, turns:
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    with turns:
        for number, thread in enumerate(threads):
            thread.start()
            while len(turns._waiting) <= number:
                time.sleep(0.001)
    for thread in threads:
        thread.join(10)
    assert order == list(range(8))
    assert turns._owner is None


def test_one_that_asks_again_at_once_waits_for_the_others() -> None:
    turns, taken = Turns(), {"greedy": 0, "other": 0}
    stop = threading.Event()

    def work(name: str) -> None:
        while not stop.is_set():
            with turns:
                taken[name] += 1
                time.sleep(0.001)

    threads = [threading.Thread(target=work, args=(name,)) for name in taken]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert min(taken.values()) > 0.4 * sum(taken.values()), taken


def test_nobody_is_inside_together() -> None:
    turns, inside, most = Turns(), [0], [0]

    def work() -> None:
        for _ in range(300):
            with turns:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] and not turns._waiting

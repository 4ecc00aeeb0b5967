"""The small tables against plain dictionaries, beyond the sizes at which they merge and grow."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tressette_tournament.compact import Digests, Sums


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 30_000])
def test_sums_are_those_of_a_dictionary(size: int) -> None:
    rng = random.Random(size)
    sums, ones, others = Sums(), Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for number in range(size):
        pair = rng.randrange(2**31 - 60, 2**31 - 1), rng.choice([0, 1, rng.randrange(200), 2**31 - 1])
        one, other = rng.randrange(-(10**9), 10**9), 1
        sums.add(*pair, one, other)
        ones[pair] += one
        others[pair] += other
        if number % 7000 == 0:
            sums.table()  # a look on the way changes nothing
    first, second, one_sums, other_sums = sums.table()
    found = list(zip(zip(first.tolist(), second.tolist(), strict=True), one_sums.tolist(), strict=True))
    assert found == sorted((pair, ones[pair]) for pair in others)
    assert other_sums.tolist() == [others[pair] for pair, _ in found]


def test_digests_know_every_name_and_its_value() -> None:
    digests = Digests()
    for name in range(20_000):
        assert name not in digests
        assert digests.put(name, f"value of {name}")
    for name in range(20_000):
        assert name in digests
        assert not digests.put(name, f"value of {name}")
    with pytest.raises(KeyError, match="77"):
        digests.put(77, "another")
    assert not digests.put(77, "value of 77")
    assert ("77",) not in digests

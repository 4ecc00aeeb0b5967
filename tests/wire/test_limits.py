"""How much one sender may send."""

from __future__ import annotations

from tressette.wire.limits import Budget


def test_a_budget_lets_a_burst_through_and_then_so_many_a_second() -> None:
    budget = Budget(per_s=2, burst=5, now=0.0)
    assert [budget.charge(0.0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [budget.charge(1.0) for _ in range(3)] == [True, True, False]
    assert [budget.charge(100.0) for _ in range(6)] == [True] * 5 + [False]


def test_what_is_refused_costs_nothing() -> None:
    budget = Budget(per_s=1, burst=10, now=0.0)
    assert budget.charge(0.0, 8)
    assert not any(budget.charge(0.0, 8) for _ in range(100))
    assert budget.charge(6.0, 8)


def test_nothing_costs_more_than_the_burst() -> None:
    budget = Budget(per_s=1, burst=10, now=0.0)
    assert budget.charge(0.0, 1000)
    assert not budget.charge(0.0)
    assert budget.charge(10.0, 1000)

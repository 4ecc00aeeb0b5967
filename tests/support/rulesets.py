"""Rule sets at random, every option and value among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tressette.rules.ruleset import RuleSet


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    """A valid rule set of a short match."""
    players = draw(st.sampled_from([2, 3, 4, 5]))
    most = draw(st.booleans())
    pairs = players == 4 and draw(st.booleans())
    options: dict[str, Any] = {
        "players": players,
        "objective": "most" if most else "least",
        "sides": "pairs" if pairs else "individual",
        "partners": draw(st.sampled_from(["fixed", "drawn"])) if pairs else "fixed",
        "signals": draw(st.sampled_from(["off", "on"])) if pairs else "off",
        "first_lead": draw(
            st.sampled_from(["dealer_right", "four_of_denari_every_deal", "four_of_denari_first_deal"])
        ),
        "packets": draw(st.sampled_from(["singly", "5+5", "3-4-3"])) if players in (2, 4) else "singly",
        "layout_3": draw(st.sampled_from(["dealer_discard", "remove_card"])),
        "removed_card": draw(st.sampled_from(["4c", "4d", "7b"])),
        "rounding": draw(st.sampled_from(["floor", "remainder_to_last", "exact"])),
        "last_trick_bonus": draw(st.sampled_from(["1", "1/2", "0"])),
        "ace_of_bastoni": draw(st.sampled_from(["normal", "instead", "extra"])),
        "monte": draw(st.sampled_from(["off", "on_request", "automatic"])),
    }
    options |= draw(_ends(most, pairs, players))
    options |= draw(_cappotto(most, options["end"]))
    if most:
        options |= draw(_declaring(options["end"]))
    return RuleSet.from_options(options)


@st.composite
def _ends(draw: st.DrawFn, most: bool, pairs: bool, players: int) -> dict[str, Any]:
    points = st.sampled_from([1, 11, 21])
    if draw(st.integers(0, 3)) == 0:
        return {"end": "fixed_deals", "deals": draw(st.integers(1, 3))}
    if most:
        return {"end": "first_to", "target": draw(points)}
    tie_break = draw(st.sampled_from(["extra_deal", "shared"]))
    if pairs or draw(st.booleans()):
        return {"end": "first_to_lowest", "threshold": draw(points), "tie_break": tie_break}
    survivors = draw(st.integers(1, min(3, players - 1)))
    return {"end": "elimination", "threshold": draw(points), "survivors": survivors, "tie_break": tie_break}


@st.composite
def _cappotto(draw: st.DrawFn, most: bool, end: str) -> dict[str, Any]:
    effects = ([] if most else ["swap"]) + ([] if end == "fixed_deals" else ["match_win"])
    if not effects:
        return {}
    options: dict[str, Any] = {
        "cappotto": draw(st.sampled_from(["none", "recorded_total", "all_points", "all_tricks"])),
        "cappotto_effect": draw(st.sampled_from(effects)),
    }
    penalty = draw(st.sampled_from([None, 1, 11]))
    return options if penalty is None else {**options, "cappotto_penalty": penalty}


@st.composite
def _declaring(draw: st.DrawFn, end: str) -> dict[str, Any]:
    return {
        "accuse": draw(st.sampled_from(["off", "optional", "automatic"])),
        "accuse_window": draw(st.sampled_from(["before_first_lead", "first_turn", "first_three_tricks"])),
        "napoli_extension": draw(st.sampled_from(["none", "numeric", "rank_order"])),
        "call_out": draw(st.sampled_from(["off", "own"])) if end == "first_to" else "off",
    }

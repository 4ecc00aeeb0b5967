"""The named rule sets: one for each text and variant, and a one-deal duplicate form of each.

Source: the number in each name or comment is the text (000 to 004) that the preset follows. A
``NAME-duplicate`` is NAME as duplicate tournaments play it: ``fixed_deals(1)``, no tie-break, effect
swap, no call-out, fixed partners.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from tressette.rules.errors import UnknownPreset
from tressette.rules.ruleset import CappottoEffect, Objective, RuleSet

_Options = Mapping[str, str | int]

_PAIRS: Final[_Options] = {"objective": "most", "sides": "pairs"}
_LEAST: Final[_Options] = {"objective": "least", "rounding": "remainder_to_last"}

_T001: Final[_Options] = {
    "first_lead": "four_of_denari_every_deal",
    "accuse": "optional",
    "accuse_window": "first_three_tricks",
    "end": "first_to",
}
_T004: Final[_Options] = {
    **_PAIRS,
    "end": "first_to",
    "target": 21,
    "first_lead": "four_of_denari_first_deal",
    "packets": "5+5",
    "accuse": "automatic",
    "accuse_window": "before_first_lead",
    "monte": "automatic",
    "call_out": "own",
}
_T000: Final[_Options] = {
    **_LEAST,
    "cappotto": "recorded_total",
    "end": "elimination",
    "threshold": 31,
    "tie_break": "extra_deal",
}
_TR002: Final[_Options] = {
    "objective": "least",
    "rounding": "floor",
    "cappotto": "recorded_total",
    "cappotto_penalty": 11,
    "end": "first_to_lowest",
    "threshold": 21,
    "tie_break": "shared",
}
_T003: Final[_Options] = {
    **_LEAST,
    "cappotto": "all_points",
    "end": "first_to_lowest",
    "threshold": 21,
    "tie_break": "extra_deal",
}

_TABLE: Final[Mapping[str, _Options]] = {
    "tressette-11": {**_PAIRS, **_T001, "target": 11},
    "tressette-21": {**_PAIRS, **_T001, "target": 21},
    "tressette-31": {**_PAIRS, **_T001, "target": 31},
    "tressette-002": {
        **_PAIRS,
        "end": "first_to",
        "target": 21,
        "accuse": "optional",
        "accuse_window": "before_first_lead",
        "napoli_extension": "numeric",
    },
    "tressette-004": _T004,
    "tressette-004-drawn": {**_T004, "partners": "drawn"},
    "tressette-due": {"objective": "most", "players": 2, **_T001, "target": 21},
    "ciapano-31": _T000,
    "ciapano-duo": {**_T000, "players": 2},
    "ciapano-trio": {**_T000, "players": 3},
    "ciapano-five": {**_T000, "players": 5},
    "ciapano-ace21": {**_T000, "ace_of_bastoni": "instead"},
    "traversone-002": _TR002,
    "traversone-002-ace": {**_TR002, "ace_of_bastoni": "extra"},
    "traversone-003-21": _T003,
    "traversone-003-31": {**_T003, "threshold": 31},
    "traversone-003-slam": {**_T003, "cappotto_effect": "match_win"},
    "traversone-003-exact": {**_T003, "rounding": "exact", "last_trick_bonus": "0"},
    "traversone-003-half": {**_T003, "rounding": "floor", "last_trick_bonus": "1/2"},
    "traversone-trio": {**_T003, "players": 3, "layout_3": "remove_card"},
    "traversone-pairs": {**_T003, "sides": "pairs", "rounding": "floor", "signals": "on"},
}

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tressette": "tressette-21",
        "traversone": "traversone-003-21",
        "ciapano": "ciapano-31",
        "rovescino": "traversone-003-21",
        "ko-manje": "traversone-003-21",
        "tressette-a-perdere": "ciapano-31",
    }
)
"""Other names of the games and what they resolve to; each also with ``-duplicate``."""

_DUPLICATE: Final = "-duplicate"


def duplicate(rules: RuleSet) -> RuleSet:
    """The one-deal form of a rule set that duplicate tournaments play."""
    changes: dict[str, object] = {"tie_break": "none", "call_out": "off", "partners": "fixed"}
    if rules.objective is Objective.MOST and rules.cappotto_effect is CappottoEffect.MATCH_WIN:
        changes["cappotto"] = "none"  # swap would punish the side that took everything
    return rules.replace(end="fixed_deals", deals=1, cappotto_effect="swap", **changes)


def _build() -> Iterator[tuple[str, RuleSet]]:
    for name, options in _TABLE.items():
        rules = RuleSet.from_options(options)
        yield name, rules
        yield name + _DUPLICATE, duplicate(rules)


PRESETS: Final[Mapping[str, RuleSet]] = MappingProxyType(dict(_build()))
"""Every preset by its name, the duplicate forms included, aliases not."""


def canonical_name(name: str) -> str:
    """The preset that a name or an alias stands for; raises UnknownPreset with the nearest name."""
    stem, suffix = (name.removesuffix(_DUPLICATE), _DUPLICATE) if name.endswith(_DUPLICATE) else (name, "")
    found = ALIASES.get(stem, stem) + suffix
    if found not in PRESETS:
        raise UnknownPreset(name, [*PRESETS, *ALIASES])
    return found


def resolve(name: str, **overrides: object) -> RuleSet:
    """The rules of a preset or alias with some options replaced, written as in ``RuleSet.options``.

    Raises UnknownPreset or RuleSetError.
    """
    rules = PRESETS[canonical_name(name)]
    return rules.replace(**overrides) if overrides else rules

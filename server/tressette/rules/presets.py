"""The named rule sets: one for each text and variant, and a one-deal duplicate form of each.

Source: ``SOURCES`` says which text (000 to 004) a preset follows, ``TEXTS`` which texts have which
value of an option. A ``NAME-duplicate`` is NAME as duplicate tournaments play it: ``fixed_deals(1)``,
no tie-break, effect swap, no call-out, fixed partners.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tressette.rules.errors import RuleSetError, UnknownPreset
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


@dataclass(frozen=True, slots=True)
class Source:
    """Where a preset comes from. text: the number of the rule text; summary: one line about it."""

    text: str
    summary: str


SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {
        "tressette-11": Source("001", "Pairs to 11; declarations in the first three tricks."),
        "tressette-21": Source("001", "Pairs to 21; declarations in the first three tricks."),
        "tressette-31": Source("001", "Pairs to 31; declarations in the first three tricks."),
        "tressette-002": Source("002", "Pairs; declarations before the first lead, a napoli can grow."),
        "tressette-004": Source("004", "Pairs; declarations and monte obligatory, calling out allowed."),
        "tressette-004-drawn": Source("004", "As tressette-004, partners drawn by the 4 and 5 of denari."),
        "tressette-due": Source("001", "Head to head with a stock; every card drawn is shown."),
        "ciapano-31": Source("000", "Everyone alone; out at 31, the last one in wins."),
        "ciapano-duo": Source("000", "Two players with a stock; out at 31."),
        "ciapano-trio": Source("000", "Three players, the dealer sets a card aside; out at 31."),
        "ciapano-five": Source("000", "Five players with eight cards; out at 31."),
        "ciapano-ace21": Source("000", "The ace of bastoni is worth 11 instead of 1; out at 31."),
        "traversone-002": Source("002", "Everyone alone; fractions dropped, lowest at 21 wins."),
        "traversone-002-ace": Source("002", "The ace of bastoni is worth 11 more; lowest at 21 wins."),
        "traversone-003-21": Source("003", "Everyone alone; fractions to the last trick, lowest at 21 wins."),
        "traversone-003-31": Source("003", "As traversone-003-21, to 31."),
        "traversone-003-slam": Source("003", "As traversone-003-21; a cappotto wins the match."),
        "traversone-003-exact": Source("003", "Fractions kept and no bonus for the last trick."),
        "traversone-003-half": Source("003", "Fractions dropped, half a point for the last trick."),
        "traversone-trio": Source("003", "Three players, one worthless card removed."),
        "traversone-pairs": Source("003", "In pairs with signals; lowest pair at 21 wins."),
    }
)
"""What each preset follows; a duplicate form follows the same."""

TEXTS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "players": {"2": "000 001 003", "3": "000 003", "4": "000 001 002 003 004", "5": "000"},
        "objective": {"most": "001 002 004", "least": "000 002 003"},
        "sides": {"individual": "000 001 002 003", "pairs": "001 002 003 004"},
        "partners": {"fixed": "001 002 003", "drawn": "004"},
        "first_lead": {
            "dealer_right": "000 003",
            "four_of_denari_every_deal": "001",
            "four_of_denari_first_deal": "004",
        },
        "packets": {"singly": "001 003 004", "5+5": "003 004", "3-4-3": "004"},
        "layout_3": {"dealer_discard": "000", "remove_card": "003"},
        "removed_card": {},
        "rounding": {"floor": "001 002 003 004", "remainder_to_last": "000 003", "exact": "003"},
        "last_trick_bonus": {"1": "001 002 003 004", "1/2": "003", "0": "003"},
        "ace_of_bastoni": {"normal": "000 001 002 003 004", "instead": "000", "extra": "002"},
        "cappotto": {
            "none": "001 002 004",
            "recorded_total": "000 002",
            "all_points": "003",
            "all_tricks": "",
        },
        "cappotto_effect": {"swap": "000 002 003", "match_win": "003"},
        "cappotto_penalty": {"11": "000 002 003", "21": "000"},
        "end": {
            "first_to": "001 002 004",
            "first_to_lowest": "002 003",
            "elimination": "000",
            "fixed_deals": "",
        },
        "target": {"11": "001", "21": "001 002 004", "31": "001 002"},
        "threshold": {"21": "002 003", "31": "000 002 003"},
        "survivors": {"1": "000", "2": "000", "3": "000"},
        "deals": {},
        "tie_break": {"none": "", "extra_deal": "000 003", "shared": ""},
        "accuse": {"off": "000 003", "optional": "001 002", "automatic": "004"},
        "accuse_window": {"before_first_lead": "002 004", "first_turn": "", "first_three_tricks": "001"},
        "napoli_extension": {"none": "001 004", "numeric": "002", "rank_order": ""},
        "monte": {"off": "001", "on_request": "004", "automatic": "004"},
        "call_out": {"off": "", "own": "004"},
        "signals": {"off": "001 003", "on": "003"},
    }
)
"""By option and value, the texts that have it; a value that is missing or blank was decided here."""

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


def source_of(name: str) -> Source:
    """What the preset of that name or alias follows; raises UnknownPreset."""
    return SOURCES[canonical_name(name).removesuffix(_DUPLICATE)]


def from_table(table: Mapping[str, object]) -> RuleSet:
    """The rules of a TOML table: ``preset = "NAME"`` and any options that replace the preset's.

    Raises UnknownPreset or RuleSetError, which names the option.
    """
    overrides = dict(table)
    name = overrides.pop("preset", None)
    if name is None:
        raise RuleSetError("preset", "must be given")
    if not isinstance(name, str):
        raise RuleSetError("preset", f"{name!r} is not the name of a preset")
    return resolve(name, **overrides)

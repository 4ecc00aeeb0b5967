"""The rules of one match as a frozen value: every option that any of the five texts names.

Source: the texts 000 to 004; the meaning of each option is in the docs beside this package
(``server/tressette/rules/RULES.md``). A ``RuleSet`` that exists makes a playable game: impossible
combinations are refused when it is built, with the option named.

Units: thresholds, targets and the cappotto penalty are whole **points**; ``last_trick_bonus`` and
``deal_total`` are **sixths** of a point (6 is one point), as all scores are.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tressette.rules.cards import ACE_OF_BASTONI, DECK_THIRDS, THIRDS, Card, parse_card
from tressette.rules.errors import NotationError, RuleSetError

POINT: Final = 6
"""One point, in sixths."""


class Objective(StrEnum):
    """Whether points are wanted (Tressette) or avoided (Traversone)."""

    MOST = "most"
    LEAST = "least"


class Sides(StrEnum):
    """Everyone alone, or seats 0 and 2 against 1 and 3 with their piles pooled."""

    INDIVIDUAL = "individual"
    PAIRS = "pairs"


class Partners(StrEnum):
    """Pairs as seated, or drawn by the 4 and 5 of denari before the first deal (004)."""

    FIXED = "fixed"
    DRAWN = "drawn"


class FirstLead(StrEnum):
    """Who leads the first trick of a deal."""

    DEALER_RIGHT = "dealer_right"
    FOUR_OF_DENARI_EVERY_DEAL = "four_of_denari_every_deal"
    FOUR_OF_DENARI_FIRST_DEAL = "four_of_denari_first_deal"


class Packets(StrEnum):
    """How many cards the dealer gives at a time; only maps deck order to hands."""

    SINGLY = "singly"
    FIVE_FIVE = "5+5"
    THREE_FOUR_THREE = "3-4-3"


class Layout3(StrEnum):
    """How three players are dealt."""

    DEALER_DISCARD = "dealer_discard"
    REMOVE_CARD = "remove_card"


class Rounding(StrEnum):
    """What becomes of the fractions when a deal is counted."""

    FLOOR = "floor"
    REMAINDER_TO_LAST = "remainder_to_last"
    EXACT = "exact"


class AceOfBastoni(StrEnum):
    """What the ace of bastoni is worth: 1, 11 instead of 1, or 11 beside its 1."""

    NORMAL = "normal"
    INSTEAD = "instead"
    EXTRA = "extra"


class Cappotto(StrEnum):
    """When a side has made cappotto."""

    NONE = "none"
    RECORDED_TOTAL = "recorded_total"
    ALL_POINTS = "all_points"
    ALL_TRICKS = "all_tricks"


class CappottoEffect(StrEnum):
    """What cappotto does: the capper records 0 and the others the penalty; or that and the match."""

    SWAP = "swap"
    MATCH_WIN = "match_win"


class TieBreak(StrEnum):
    """How a tie for the lowest total is broken at the end."""

    NONE = "none"
    EXTRA_DEAL = "extra_deal"
    SHARED = "shared"


class Accuse(StrEnum):
    """Declarations: not played, the player's choice, or made by the server at the first moment."""

    OFF = "off"
    OPTIONAL = "optional"
    AUTOMATIC = "automatic"


class AccuseWindow(StrEnum):
    """When declarations may be made."""

    BEFORE_FIRST_LEAD = "before_first_lead"
    FIRST_TURN = "first_turn"
    FIRST_THREE_TRICKS = "first_three_tricks"


class NapoliExtension(StrEnum):
    """Whether a napoletana grows by the cards that continue it, and in which order."""

    NONE = "none"
    NUMERIC = "numeric"
    RANK_ORDER = "rank_order"


class Monte(StrEnum):
    """Whether a hand worth under one point voids the deal."""

    OFF = "off"
    ON_REQUEST = "on_request"
    AUTOMATIC = "automatic"


class CallOut(StrEnum):
    """Whether a side may claim, before its card, to have reached the target."""

    OFF = "off"
    OWN = "own"


class Signals(StrEnum):
    """Whether the leader of a trick may attach busso, volo or striscio (pairs)."""

    OFF = "off"
    ON = "on"


@dataclass(frozen=True, slots=True)
class FirstTo:
    """The highest side at or over ``target`` points after a deal wins (objective most)."""

    target: int


@dataclass(frozen=True, slots=True)
class FirstToLowest:
    """Someone is at or over ``threshold`` points after a deal: the lowest total wins."""

    threshold: int


@dataclass(frozen=True, slots=True)
class Elimination:
    """Who is at or over ``threshold`` points is out; at most ``survivors`` left share the win."""

    threshold: int
    survivors: int = 1


@dataclass(frozen=True, slots=True)
class FixedDeals:
    """``deals`` deals are played; best total, ties shared."""

    deals: int = 1


End = FirstTo | FirstToLowest | Elimination | FixedDeals

_ENDS: Final[Mapping[str, type[End]]] = {
    "first_to": FirstTo,
    "first_to_lowest": FirstToLowest,
    "elimination": Elimination,
    "fixed_deals": FixedDeals,
}
_END_NAMES: Final = {kind: name for name, kind in _ENDS.items()}
_END_OPTIONS: Final = ("target", "threshold", "survivors", "deals")

_FOUR_OF_COPPE: Final = parse_card("4c")
_BONUS_TEXT: Final = {"1": 6, "1/2": 3, "0": 0}

_ENUMS: Final[Mapping[str, type[StrEnum]]] = {
    "objective": Objective,
    "sides": Sides,
    "partners": Partners,
    "first_lead": FirstLead,
    "packets": Packets,
    "layout_3": Layout3,
    "rounding": Rounding,
    "ace_of_bastoni": AceOfBastoni,
    "cappotto": Cappotto,
    "cappotto_effect": CappottoEffect,
    "tie_break": TieBreak,
    "accuse": Accuse,
    "accuse_window": AccuseWindow,
    "napoli_extension": NapoliExtension,
    "monte": Monte,
    "call_out": CallOut,
    "signals": Signals,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSet:
    """One playable set of rules. Raises RuleSetError, naming the option, for one that is not.

    Rule sets that resolve to the same options are equal, whether a cappotto penalty of T was named or
    left to its default.
    """

    players: int = 4
    objective: Objective
    sides: Sides = Sides.INDIVIDUAL
    partners: Partners = Partners.FIXED
    first_lead: FirstLead = FirstLead.DEALER_RIGHT
    packets: Packets = Packets.SINGLY
    layout_3: Layout3 = Layout3.DEALER_DISCARD
    removed_card: Card = _FOUR_OF_COPPE
    rounding: Rounding = Rounding.FLOOR
    last_trick_bonus: int = POINT
    ace_of_bastoni: AceOfBastoni = AceOfBastoni.NORMAL
    cappotto: Cappotto = Cappotto.NONE
    cappotto_effect: CappottoEffect = CappottoEffect.SWAP
    cappotto_penalty: int | None = None
    end: End
    tie_break: TieBreak = TieBreak.NONE
    accuse: Accuse = Accuse.OFF
    accuse_window: AccuseWindow = AccuseWindow.FIRST_TURN
    napoli_extension: NapoliExtension = NapoliExtension.NONE
    monte: Monte = Monte.OFF
    call_out: CallOut = CallOut.OFF
    signals: Signals = Signals.OFF

    def __post_init__(self) -> None:
        _check_types(self)
        _check_table(self)
        _check_scoring(self)
        _check_end(self)
        _check_declaring(self)

    def __eq__(self, other: object) -> bool:
        return self.options() == other.options() if isinstance(other, RuleSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.options().items()))

    @property
    def pairs(self) -> bool:
        """Whether seats 0 and 2 play against 1 and 3."""
        return self.sides is Sides.PAIRS

    @property
    def side_count(self) -> int:
        """Number of sides: 2 in pairs, else one for each player."""
        return 2 if self.pairs else self.players

    def side_of(self, seat: int) -> int:
        """The side a seat belongs to."""
        return seat % 2 if self.pairs else seat

    def seats_of(self, side: int) -> tuple[int, ...]:
        """The seats of a side."""
        return (side, side + 2) if self.pairs else (side,)

    @property
    def ace_thirds(self) -> int:
        """Value of the ace of bastoni, in thirds of a point."""
        return {AceOfBastoni.NORMAL: 3, AceOfBastoni.INSTEAD: 33, AceOfBastoni.EXTRA: 36}[self.ace_of_bastoni]

    @property
    def deck_thirds(self) -> int:
        """What all cards are worth together, in thirds of a point."""
        return DECK_THIRDS - THIRDS[ACE_OF_BASTONI] + self.ace_thirds

    @property
    def deal_total(self) -> int:
        """T: the whole points of the deck and one for the last trick, in sixths (11 points normally)."""
        return (self.deck_thirds // 3 + 1) * POINT

    @property
    def penalty(self) -> int:
        """What the others record when somebody makes cappotto, in sixths."""
        return self.deal_total if self.cappotto_penalty is None else self.cappotto_penalty * POINT

    def options(self) -> dict[str, str | int]:
        """Every option by its name, in a fixed order, as text and whole numbers (JSON, TOML, docs)."""
        result: dict[str, str | int] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "end":
                result["end"] = _END_NAMES[type(value)]
                result |= dataclasses.asdict(value)
            elif field.name == "last_trick_bonus":
                result[field.name] = next(text for text, sixths in _BONUS_TEXT.items() if sixths == value)
            elif field.name == "cappotto_penalty":
                result[field.name] = self.penalty // POINT
            else:
                result[field.name] = value if type(value) is int else str(value)
        return result

    def hash(self) -> str:
        """SHA-256 (hex) of the resolved options: equal exactly for equal rules. Names a rating pool."""
        canonical = json.dumps(self.options(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> RuleSet:
        """The inverse of ``options``; missing ones take their defaults.

        Raises RuleSetError naming an option that is unknown, missing or has an impossible value.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in known and name not in _END_OPTIONS:
                near = difflib.get_close_matches(name, [*known, *_END_OPTIONS], n=1)
                raise RuleSetError(name, "no such option" + (f"; did you mean {near[0]!r}?" if near else ""))
        for name in ("objective", "end"):
            if name not in options:
                raise RuleSetError(name, "must be given")
        values: dict[str, object] = {}
        for name in known:
            if name == "end":
                values[name] = _end_from(options)
            elif name in options:
                values[name] = _value_from(name, options[name])
        return cls(**values)  # type: ignore[arg-type]  # __post_init__ checks the types

    def replace(self, **overrides: object) -> RuleSet:
        """A copy with these options (named and written as in ``options``); raises RuleSetError."""
        options: dict[str, object] = dict(self.options())
        if self.cappotto_penalty is None:
            del options["cappotto_penalty"]
        if "end" in overrides and overrides["end"] != options["end"]:
            for name in _END_OPTIONS:
                options.pop(name, None)
        return RuleSet.from_options(options | overrides)


def _end_from(options: Mapping[str, object]) -> End:
    kind = options["end"]
    if not isinstance(kind, str) or kind not in _ENDS:
        raise RuleSetError("end", f"{kind!r} is none of {', '.join(_ENDS)}")
    cls = _ENDS[kind]
    wanted = [field.name for field in dataclasses.fields(cls)]
    for name in _END_OPTIONS:
        if name in options and name not in wanted:
            raise RuleSetError(name, f"means nothing with end {kind!r}, which takes {', '.join(wanted)}")
    if wanted[0] in ("target", "threshold") and wanted[0] not in options:
        raise RuleSetError(wanted[0], f"must be given with end {kind!r}")
    return cls(**{name: options[name] for name in wanted if name in options})  # type: ignore[arg-type]


def _value_from(name: str, value: object) -> object:
    if name in _ENUMS:
        try:
            return _ENUMS[name](str(value))
        except ValueError:
            values = ", ".join(_ENUMS[name])
            raise RuleSetError(name, f"{value!r} is none of {values}") from None
    if name == "last_trick_bonus":
        if str(value) not in _BONUS_TEXT or isinstance(value, bool):
            raise RuleSetError(name, f"{value!r} is none of {', '.join(_BONUS_TEXT)}")
        return _BONUS_TEXT[str(value)]
    if name == "removed_card":
        try:
            return parse_card(value if isinstance(value, str) else repr(value))
        except NotationError as error:
            raise RuleSetError(name, str(error)) from None
    return value


def _whole(option: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise RuleSetError(option, f"{value!r} is not a whole number from {low} to {high}")


def _check_types(rules: RuleSet) -> None:
    for name, kind in _ENUMS.items():
        if not isinstance(getattr(rules, name), kind):
            raise RuleSetError(name, f"{getattr(rules, name)!r} is none of {', '.join(kind)}")
    if not isinstance(rules.removed_card, Card):
        raise RuleSetError("removed_card", f"{rules.removed_card!r} is not a card")
    if type(rules.end) not in _END_NAMES:
        raise RuleSetError("end", f"{rules.end!r} is none of {', '.join(_ENDS)}")
    if rules.last_trick_bonus not in _BONUS_TEXT.values():
        raise RuleSetError("last_trick_bonus", f"{rules.last_trick_bonus!r} sixths is none of 6, 3, 0")
    if rules.cappotto_penalty is not None:
        _whole("cappotto_penalty", rules.cappotto_penalty, 1, 1000)


def _check_table(rules: RuleSet) -> None:
    _whole("players", rules.players, 2, 5)
    if rules.pairs and rules.players != 4:
        raise RuleSetError("sides", f"pairs need four players, not {rules.players}")
    if rules.partners is Partners.DRAWN and not rules.pairs:
        raise RuleSetError("partners", "can only be drawn in pairs")
    if THIRDS[rules.removed_card]:
        raise RuleSetError(
            "removed_card", f"{rules.removed_card} is worth points; only a 4, 5, 6 or 7 may go"
        )
    if rules.packets is not Packets.SINGLY and rules.players not in (2, 4):
        hand = {3: "thirteen", 5: "eight"}[rules.players]
        raise RuleSetError("packets", f"{rules.packets} needs hands of ten cards, not of {hand}")


def _check_scoring(rules: RuleSet) -> None:
    if (
        rules.objective is Objective.MOST
        and rules.cappotto is not Cappotto.NONE
        and rules.cappotto_effect is CappottoEffect.SWAP
    ):
        raise RuleSetError(
            "cappotto_effect", "swap would punish the side that took everything; use match_win"
        )


def _check_end(rules: RuleSet) -> None:
    end, most = rules.end, rules.objective is Objective.MOST
    if isinstance(end, FirstTo):
        _whole("target", end.target, 1, 10_000)
        if not most:
            raise RuleSetError("end", "first_to needs the objective most; use first_to_lowest")
    elif isinstance(end, FixedDeals):
        _whole("deals", end.deals, 1, 10_000)
        if rules.tie_break is not TieBreak.NONE:
            raise RuleSetError("tie_break", "fixed_deals shares ties; the tie-break must be none")
        if rules.cappotto is not Cappotto.NONE and rules.cappotto_effect is CappottoEffect.MATCH_WIN:
            raise RuleSetError("cappotto_effect", "match_win would cut a match of fixed_deals short")
    else:
        _whole("threshold", end.threshold, 1, 10_000)
        if most:
            raise RuleSetError("end", f"{_END_NAMES[type(end)]} needs the objective least; use first_to")
        if rules.tie_break is TieBreak.NONE:
            raise RuleSetError("tie_break", f"{_END_NAMES[type(end)]} can end in a tie; choose a tie-break")
        if isinstance(end, Elimination):
            if rules.pairs:
                raise RuleSetError("end", "elimination is for individuals, not for pairs")
            _whole("survivors", end.survivors, 1, 3)
            if end.survivors >= rules.players:
                raise RuleSetError(
                    "survivors", f"{end.survivors} must be fewer than the {rules.players} players"
                )


def _check_declaring(rules: RuleSet) -> None:
    most = rules.objective is Objective.MOST
    if rules.accuse is not Accuse.OFF and not most:
        raise RuleSetError("accuse", "declarations are worth points and need the objective most")
    if rules.call_out is not CallOut.OFF:
        if not most:
            raise RuleSetError("call_out", "needs the objective most")
        if not isinstance(rules.end, FirstTo):
            raise RuleSetError(
                "call_out", "claims to have reached the target of first_to, the end must be first_to"
            )
    if rules.signals is Signals.ON and not rules.pairs:
        raise RuleSetError("signals", "are between partners and need pairs")

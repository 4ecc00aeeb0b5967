"""The one table of errors is complete, and the documented reasons are those of the protocol."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import grpc
import pytest
import tressette
from tressette.play.session import UnknownHandle
from tressette.rules.errors import IllegalAction, MalformedAction, NotYourTurn, Refusal, RuleSetError
from tressette.v1 import arena_service_pb2 as pb
from tressette.wire.errors import INTERNAL, TABLE, entry_of, to_wire

ROOT = Path(__file__).parents[2]
DOMAIN = ("tressette.rules", "tressette.record", "tressette.play")


def domain_errors() -> set[type[Exception]]:
    """Every exception that rules, record and play define, but for those that only group others."""
    found: set[type[Exception]] = set()
    for module in pkgutil.walk_packages(tressette.__path__, "tressette."):
        if module.name.startswith(DOMAIN):
            for value in vars(importlib.import_module(module.name)).values():
                if (
                    isinstance(value, type)
                    and issubclass(value, Exception)
                    and value.__module__.startswith(DOMAIN)
                ):
                    found.add(value)
    return {error for error in found if not error.__subclasses__()}


def test_every_domain_error_is_in_the_table() -> None:
    assert domain_errors() == set(TABLE) | INTERNAL


def test_what_is_in_no_table_is_internal_and_tells_nothing_by_its_reason() -> None:
    assert entry_of(KeyError("secret")).status is grpc.StatusCode.INTERNAL


@pytest.mark.parametrize("code", Refusal)
@pytest.mark.parametrize("kind", [MalformedAction, IllegalAction, NotYourTurn])
def test_every_refusal_of_the_rules_has_its_reason(
    code: Refusal, kind: type[MalformedAction | IllegalAction | NotYourTurn]
) -> None:
    message = to_wire(kind(code, "because"), "h", 3, may_retry=True)
    assert pb.ErrorReason.Name(message.reason) == f"ERROR_REASON_{code}"
    assert (message.message, message.handle, message.turn_id, message.may_retry) == ("because", "h", 3, True)


def test_the_field_at_fault_is_named() -> None:
    assert to_wire(RuleSetError("target", "too low"), "", 0, False).field == "rules.target"
    assert to_wire(UnknownHandle(), "h", 1, False).field == "handle"


def test_the_documented_reasons_are_those_of_the_protocol() -> None:
    text = (ROOT / "clients" / "ERRORS.md").read_text(encoding="utf-8")
    documented = {
        name: int(number) for number, name in re.findall(r"^\| (\d+) \| `(\w+)` \| .+ \|$", text, re.M)
    }
    assert documented == {name.removeprefix("ERROR_REASON_"): n for name, n in pb.ErrorReason.items()}

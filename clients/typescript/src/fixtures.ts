// What the tests have in common; no part of the package.
import { MatchStarted } from "./gen/tressette/v1/arena_service.js";
import type { Card } from "./gen/tressette/v1/card.js";
import { Objective, Sides, type RuleSet } from "./gen/tressette/v1/rules.js";
import { LegalActions, Turn } from "./gen/tressette/v1/view.js";
import { Bot, type View } from "./index.js";

/** The start of a match in pairs to 21, the bot on seat 1. */
export function started(rules: Partial<RuleSet> = {}): MatchStarted {
  return MatchStarted.create({
    seat: 1,
    rules: {
      players: 4,
      objective: Objective.MOST,
      sides: Sides.PAIRS,
      end: { $case: "firstTo", value: { target: 21 } },
      ...rules,
    },
    botSeed: Buffer.alloc(32, 7),
  });
}

/** A turn with these legal actions. */
export function turn(legal: Partial<LegalActions>, turnId = 1): Turn {
  return Turn.create({ turnId, view: { legal: LegalActions.create(legal) } });
}

class Plain extends Bot {
  override choose(view: View): Card | Promise<Card> {
    return view.legal.cards[0] as Card;
  }
}

/** A bot that plays the first legal card, but for these methods. */
export function plain(methods: Partial<Bot> = {}): Bot {
  return Object.assign(new Plain(), methods);
}

import type { Card } from "./gen/tressette/v1/card.js";
import { Signal, type Declaration, type MatchEnded } from "./gen/tressette/v1/event.js";
import { Objective } from "./gen/tressette/v1/rules.js";
import { strengthOf, thirdsOf } from "./cards.js";
import type { Match, View } from "./view.js";

/**
 * A bot. One object plays all its matches, many at once, so what it remembers of a match belongs to the
 * Match (a WeakMap keyed by it, say) and not into a field of its own.
 */
export abstract class Bot {
  /** The card to play, one of view.legal.cards. A promise lets other matches go on meanwhile. */
  abstract choose(view: View): Card | Promise<Card>;

  /** The combinations to declare, some of view.legal.declarations: all of them, unless overridden. */
  declare(view: View): Declaration[] {
    return view.legal.declarations;
  }

  /**
   * The card that the dealer of three sets aside for the winner of the last trick, one of view.legal.discards:
   * where points are avoided the strongest, the most valuable among equals, where they are wanted the weakest
   * of those worth least.
   */
  discard(view: View): Card {
    const by =
      view.rules.objective === Objective.LEAST
        ? (card: Card) => -(10 * strengthOf(card) + thirdsOf(card))
        : (card: Card) => 10 * thirdsOf(card) + strengthOf(card);
    return view.legal.discards.reduce((best, card) => (by(card) < by(best) ? card : best));
  }

  /** Whether to void the deal, asked when view.legal.monte: only where points are wanted. */
  monte(view: View): boolean {
    return view.rules.objective === Objective.MOST;
  }

  /**
   * Whether to claim, instead of playing a card, that the own side has reached the target, asked when
   * view.legal.callOut; a wrong claim loses 11 points. Exactly when it is right.
   */
  callOut({ match, rules }: View): boolean {
    const points = Math.floor((match.thirds[match.side] ?? 0) / 3) + (match.totals[match.side] ?? 0) / 6;
    return rules.end?.$case === "firstTo" && points >= rules.end.value.target;
  }

  /** The signal that goes with the card chosen, asked when view.legal.signals: none. */
  signal(_view: View, _card: Card): Signal {
    return Signal.UNSPECIFIED;
  }

  /** A match has started. */
  matchStarted(_match: Match): void {}

  /** A match is over. */
  matchEnded(_match: Match, _result: MatchEnded): void {}
}

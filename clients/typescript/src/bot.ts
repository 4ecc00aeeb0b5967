import { Card } from "./gen/tressette/v1/card.js";
import { Signal, type Declaration, type MatchEnded } from "./gen/tressette/v1/event.js";
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

  /** The card that the dealer of three sets aside, one of view.legal.discards: the first. */
  discard(view: View): Card {
    return view.legal.discards[0] as Card;
  }

  /** Whether to void the deal, asked when view.legal.monte: no. */
  monte(_view: View): boolean {
    return false;
  }

  /** Whether to claim that the own side has reached the target, asked when view.legal.callOut: no. */
  callOut(_view: View): boolean {
    return false;
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

import type { MatchStarted } from "./gen/tressette/v1/arena_service.js";
import type { Card } from "./gen/tressette/v1/card.js";
import type { Event } from "./gen/tressette/v1/event.js";
import type { RuleSet } from "./gen/tressette/v1/rules.js";
import type { Clock, LegalActions, Turn } from "./gen/tressette/v1/view.js";
import { ProtocolError } from "./errors.js";
import { Random } from "./random.js";

/** One seat of one match, from its start to its end. */
export class Match {
  /** All that the arena said at the start: preset, names, clock, attempt and so on. */
  readonly started: MatchStarted;
  /** The rules, every option of them. */
  readonly rules: RuleSet;
  /** The bot's seat, 0 to players - 1. */
  readonly seat: number;
  /** What has happened so far; the event with number n is events[n - 1]. */
  readonly events: readonly Event[] = [];
  /** Draw all chance from here, so that the play can be repeated. */
  readonly random: Random;

  constructor(started: MatchStarted) {
    if (started.rules === undefined) {
      throw new ProtocolError("a match started without rules");
    }
    this.started = started;
    this.rules = started.rules;
    this.seat = started.seat;
    this.random = new Random(started.botSeed);
  }
}

/** What the bot sees when it is asked. */
export class View {
  /** The cards it holds. */
  readonly hand: readonly Card[];
  /** The cards of the trick under way, in the order in which they were played; empty for its leader. */
  readonly table: readonly Card[];
  /** The seat that leads, or led, the trick under way. */
  readonly leader: number;
  /** What it may answer. */
  readonly legal: Readonly<LegalActions>;
  /** Its clock for this answer; undefined: no limit. */
  readonly clock: Readonly<Clock> | undefined;

  constructor(
    /** The match. Its events go on to grow after this view was given. */
    readonly match: Match,
    turn: Turn,
  ) {
    if (turn.view?.legal === undefined) {
      throw new ProtocolError("a turn came without a view or without legal actions");
    }
    this.hand = turn.view.hand;
    this.table = turn.view.table;
    this.leader = turn.view.leader;
    this.legal = turn.view.legal;
    this.clock = turn.clock;
  }

  /** The bot's seat. */
  get seat(): number {
    return this.match.seat;
  }

  /** The rules of the match. */
  get rules(): RuleSet {
    return this.match.rules;
  }

  /** What has happened in the match so far. */
  get events(): readonly Event[] {
    return this.match.events;
  }

  /** Draw all chance from here. */
  get random(): Random {
    return this.match.random;
  }
}

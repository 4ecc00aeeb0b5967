import type { MatchStarted } from "./gen/tressette/v1/arena_service.js";
import type { Card } from "./gen/tressette/v1/card.js";
import type { Event, MatchEnded } from "./gen/tressette/v1/event.js";
import { Sides, type RuleSet } from "./gen/tressette/v1/rules.js";
import type { Clock, LegalActions, Turn } from "./gen/tressette/v1/view.js";
import { ProtocolError } from "./errors.js";
import { Random } from "./random.js";

/** Sixths, in which scores are counted, to a point. */
const SIXTHS = 6;

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
  /** Match totals by side, in sixths of a point, declarations of the deal under way included. */
  readonly totals: readonly number[];
  /** What each side has taken in the tricks of the deal under way, in thirds of a point. */
  readonly thirds: readonly number[];
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
    const sides = this.rules.sides === Sides.PAIRS ? 2 : this.rules.players;
    this.totals = new Array<number>(sides).fill(0);
    this.thirds = new Array<number>(sides).fill(0);
  }

  /** The side that a seat belongs to: the seat itself for individuals, 0 or 1 in pairs. */
  sideOf(seat: number): number {
    return this.rules.sides === Sides.PAIRS ? seat % 2 : seat;
  }

  /** The bot's side. */
  get side(): number {
    return this.sideOf(this.seat);
  }

  /**
   * Take in those events that are new; the end of the match, if it is among them. For the client.
   * @internal
   */
  take(first: number, events: readonly Event[]): MatchEnded | undefined {
    const known = this.events as Event[];
    if (events.length > 0 && first > known.length + 1) {
      throw new ProtocolError(`events ${known.length + 1} to ${first - 1} are missing`);
    }
    for (const event of events.slice(known.length + 1 - first)) {
      known.push(event);
      this.#count(event);
    }
    const last = known.at(-1)?.kind;
    return last?.$case === "matchEnded" ? last.value : undefined;
  }

  #count({ kind }: Event): void {
    const totals = this.totals as number[];
    const thirds = this.thirds as number[];
    switch (kind?.$case) {
      case "dealStarted":
        thirds.fill(0);
        break;
      case "trickWon":
        thirds[this.sideOf(kind.value.seat)]! += kind.value.thirds;
        break;
      case "declarationMade":
        totals[this.sideOf(kind.value.seat)]! += SIXTHS * (kind.value.declaration?.points ?? 0);
        break;
      case "dealScored":
        totals.splice(0, totals.length, ...kind.value.totals);
        break;
    }
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

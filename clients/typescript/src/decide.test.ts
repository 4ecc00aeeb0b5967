import assert from "node:assert/strict";
import { test } from "node:test";
import { decide, type Choice } from "./decide.js";
import { plain, started, turn } from "./fixtures.js";
import { Answer } from "./gen/tressette/v1/arena_service.js";
import type { LegalActions } from "./gen/tressette/v1/view.js";
import {
  Match,
  Objective,
  parseCard,
  parseCards,
  Rank,
  Random,
  Sides,
  Signal,
  View,
  type Bot,
  type Card,
  type Declaration,
  type Event,
  type RuleSet,
} from "./index.js";

const ACES: Declaration = {
  combination: { $case: "bongioco", value: Rank.ASSO },
  cards: parseCards("Ad Ac As"),
  points: 3,
};

function ask(bot: Bot, legal: Partial<LegalActions>, rules: Partial<RuleSet> = {}, events: Event[] = []) {
  const match = new Match(started(rules));
  match.take(1, events);
  return decide(bot, new View(match, turn(legal)));
}

function answer(choice: Partial<Choice>): Choice {
  return Answer.create(choice as Answer);
}

test("a card is chosen, after all that can be declared", () => {
  const cards = parseCards("3d 4d");
  assert.deepEqual(
    ask(plain(), { cards, declarations: [ACES] }),
    answer({ card: parseCard("3d"), declarations: [ACES] }),
  );
});

test("a chosen card may be a promise", async () => {
  const bot = plain({ choose: async (view: View) => view.legal.cards[1] as Card });
  assert.deepEqual(await ask(bot, { cards: parseCards("3d 4d") }), answer({ card: parseCard("4d") }));
});

test("a signal goes with the card only where there are signals", () => {
  const bot = plain({ signal: () => Signal.VOLO });
  const cards = parseCards("3d");
  assert.deepEqual(ask(bot, { cards }), answer({ card: parseCard("3d") }));
  assert.deepEqual(ask(bot, { cards, signals: true }), answer({ card: parseCard("3d"), signal: Signal.VOLO }));
});

test("declarations alone are answered without a card", () => {
  assert.deepEqual(ask(plain(), { declarations: [ACES] }), answer({ declarations: [ACES] }));
});

test("monte is called where points are wanted", () => {
  assert.deepEqual(ask(plain(), { monte: true }), answer({ monte: true }));
  assert.deepEqual(ask(plain(), { monte: true }, { objective: Objective.LEAST }), answer({}));
});

test("what is discarded is of no use", () => {
  const discards = parseCards("3d Ac 5c 4s");
  assert.deepEqual(ask(plain(), { discards }), answer({ discard: parseCard("4s") }));
  assert.deepEqual(
    ask(plain(), { discards }, { objective: Objective.LEAST, sides: Sides.INDIVIDUAL, players: 3 }),
    answer({ discard: parseCard("3d") }),
  );
});

test("the target is called out exactly when it is reached", () => {
  const scored = (totals: number[]): Event => ({
    kind: {
      $case: "dealScored",
      value: { phase: 1, number: 1, endedBy: 1, sides: [], totals, lastTrick: 0, cappotto: undefined, setAside: 0 },
    },
  });
  const won = (seat: number, thirds: number): Event => ({ kind: { $case: "trickWon", value: { seat, thirds } } });
  const legal = { cards: parseCards("3d"), callOut: true };
  const short = [scored([0, 120]), won(3, 2), won(0, 9)];
  assert.deepEqual(ask(plain(), legal, {}, short), answer({ card: parseCard("3d") }));
  assert.deepEqual(ask(plain(), legal, {}, [...short, won(1, 1)]), answer({ callOut: true }));
});

test("events that are known already are not taken in again, and none may be missing", () => {
  const match = new Match(started());
  const event = (seat: number): Event => ({ kind: { $case: "trickWon", value: { seat, thirds: 1 } } });
  match.take(1, [event(0), event(1)]);
  match.take(2, [event(1), event(2)]);
  match.take(1, [event(0)]);
  match.take(0, []);
  assert.deepEqual(match.events, [event(0), event(1), event(2)]);
  assert.deepEqual(match.thirds, [2, 1]);
  assert.throws(() => match.take(5, [event(0)]), /events 4 to 4 are missing/);
});

test("chance is repeated with its seed", () => {
  const draw = (fill: number) => {
    const random = new Random(Buffer.alloc(32, fill));
    return Array.from({ length: 100 }, () => random.pick([0, 1, 2, 3, 4, 5, 6, 7]));
  };
  assert.deepEqual(draw(1), draw(1));
  assert.notDeepEqual(draw(1), draw(2));
  assert.equal(new Set(draw(0)).size, 8);
});

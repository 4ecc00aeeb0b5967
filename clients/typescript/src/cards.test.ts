import assert from "node:assert/strict";
import { test } from "node:test";
import { Card, cardOf, cardsText, cardText, parseCard, parseCards, rankOf, strengthOf, suitOf, thirdsOf } from "./index.js";

const DECK = Array.from({ length: 40 }, (_, index): Card => index + 1);

test("every card is written and read again", () => {
  assert.deepEqual(DECK.map(cardText).map(parseCard), DECK);
  assert.equal(cardText(Card.ASSO_DENARI), "Ad");
  assert.equal(parseCard("Rb"), Card.RE_BASTONI);
  assert.deepEqual(parseCards(" 3c Fs "), [Card.TRE_COPPE, Card.FANTE_SPADE]);
  assert.equal(cardsText([Card.TRE_COPPE, Card.FANTE_SPADE]), "3c Fs");
});

test("suit and rank make the card", () => {
  assert.deepEqual(DECK.map((card) => cardOf(suitOf(card), rankOf(card))), DECK);
});

test("what is no card is said to be none", () => {
  for (const text of ["", "3", "8d", "3D", "3dd", "d3"]) {
    assert.throws(() => parseCard(text), SyntaxError, text);
  }
  assert.throws(() => cardText(Card.UNSPECIFIED), RangeError);
  assert.throws(() => cardText(41 as Card), RangeError);
  assert.throws(() => cardOf(4, 0), RangeError);
  assert.throws(() => cardOf(0, 10), RangeError);
});

test("a suit is worth eight thirds, and its three is the strongest", () => {
  const denari = DECK.slice(0, 10);
  assert.equal(denari.reduce((sum, card) => sum + thirdsOf(card), 0), 8);
  const strongestFirst = [...denari].sort((a, b) => strengthOf(b) - strengthOf(a));
  assert.equal(cardsText(strongestFirst), "3d 2d Ad Rd Cd Fd 7d 6d 5d 4d");
});

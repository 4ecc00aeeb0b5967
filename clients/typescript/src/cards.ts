import { Card } from "./gen/tressette/v1/card.js";

const RANKS = "A234567FCR";
const SUITS = "dcsb";

/** The suit of a card: 0 denari, 1 coppe, 2 spade, 3 bastoni. One less than the value in the enum Suit. */
export function suitOf(card: Card): number {
  return Math.floor((card - 1) / 10);
}

/** The rank of a card: 0 asso, 1 due, ... 6 sette, 7 fante, 8 cavallo, 9 re. */
export function rankOf(card: Card): number {
  return (card - 1) % 10;
}

/** The card with this suit and rank, numbered as above. */
export function cardOf(suit: number, rank: number): Card {
  if (![0, 1, 2, 3].includes(suit) || !Number.isInteger(rank) || rank < 0 || rank > 9) {
    throw new RangeError(`no card has suit ${suit} and rank ${rank}`);
  }
  return 10 * suit + rank + 1;
}

/** How strong a card is in its suit: 0 for the four up to 9 for the three (4 5 6 7 F C R A 2 3). */
export function strengthOf(card: Card): number {
  return "4567FCRA23".indexOf(RANKS.charAt(rankOf(card)));
}

/**
 * What a card is worth in thirds of a point: 3 for an asso, 1 for due, tre and figures, 0 for the rest. Rules
 * with another value for the ace of bastoni (RuleSet.aceOfBastoni) are not looked at.
 */
export function thirdsOf(card: Card): number {
  const rank = rankOf(card);
  return rank === 0 ? 3 : rank <= 2 || rank >= 7 ? 1 : 0;
}

/** How a card is written: its rank (A 2 3 4 5 6 7 F C R), then its suit (d c s b), such as "3d". */
export function cardText(card: Card): string {
  if (!(Number.isInteger(card) && card >= 1 && card <= 40)) {
    throw new RangeError(`${card} is no card`);
  }
  return RANKS.charAt(rankOf(card)) + SUITS.charAt(suitOf(card));
}

/** The card that is written so. */
export function parseCard(text: string): Card {
  const rank = RANKS.indexOf(text.charAt(0));
  const suit = SUITS.indexOf(text.charAt(1));
  if (text.length !== 2 || rank < 0 || suit < 0) {
    throw new SyntaxError(`"${text}" is no card`);
  }
  return cardOf(suit, rank);
}

/** How cards are written, with spaces between them: "Ad 3d Rb". */
export function cardsText(cards: Iterable<Card>): string {
  return Array.from(cards, cardText).join(" ");
}

/** The cards that are written so. */
export function parseCards(text: string): Card[] {
  return text.split(/\s+/).filter(Boolean).map(parseCard);
}

import { Answer } from "./gen/tressette/v1/arena_service.js";
import type { Bot } from "./bot.js";
import type { Card } from "./gen/tressette/v1/card.js";
import type { View } from "./view.js";

/** An answer, but for the turn that it belongs to. */
export type Choice = Omit<Answer, "handle" | "turnId">;

/** Ask the bot all that the turn asks. */
export function decide(bot: Bot, view: View): Choice | Promise<Choice> {
  const { legal } = view;
  if (legal.monte && bot.monte(view)) {
    return Answer.create({ monte: true });
  }
  const declarations = legal.declarations.length > 0 ? bot.declare(view) : [];
  if (legal.discards.length > 0) {
    return Answer.create({ declarations, discard: bot.discard(view) });
  }
  if (legal.callOut && bot.callOut(view)) {
    return Answer.create({ declarations, callOut: true });
  }
  if (legal.cards.length === 0) {
    return Answer.create({ declarations });
  }
  const play = (card: Card): Choice =>
    Answer.create({ declarations, card, signal: legal.signals ? bot.signal(view, card) : 0 });
  const card = bot.choose(view);
  return card instanceof Promise ? card.then(play) : play(card);
}

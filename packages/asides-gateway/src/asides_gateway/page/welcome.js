// @ts-check
// The empty page: what it is, shown by being it, and three things to try.

import { button, make } from "./dom.js";

const TO_TRY = [
  ["A puzzle", "A bat and a ball cost 1.10 together, and the bat costs 1.00 more than the ball. What does the ball cost, and why do most people get it wrong?"],
  ["A table", "Compare three ways to sort a list in a table: how they work, how long they take, and when to choose which."],
  ["A few lines", "Write a function that finds the longest word that reads the same backwards in a text, and explain how it works."],
];

/** @param {boolean} hasModel @param {(text: string) => void} onTry */
export function makeWelcome(hasModel, onTry) {
  const list = make("ul.tries", {});
  for (const [name, text] of TO_TRY) {
    const act = button("try", "", () => onTry(text));
    act.append(make("b", {}, name), make("span", {}, text));
    list.append(make("li", {}, act));
  }
  return make("section.welcome", { "aria-label": "Begin" },
    make("div.column", {},
      make("h2", {}, "Ask something."),
      make("p.lead", {}, hasModel ? "The answer appears here." : "No model is known yet: name one below as provider:model, or set a provider’s key and start the gateway again."),
      list),
    make("div.margin", {}, make("p.whisper", {}, "(and the model's thinking appears here, in the margin, beside what it led to)")));
}

// @ts-check
// A bar that shows waiting, thinking and answering to scale, and grows while a request is under way.

import { make } from "./dom.js";
import { formatExactly } from "./figures.js";
import { isOpen } from "./request_words.js";

/** @typedef {import("./request_words.js").Summary} Summary */
/** @typedef {import("./request_words.js").State} State */

/**
 * The stretches of a request: how long it was in which state.
 * @param {Pick<Summary, "spans">} request @param {number} now its seconds so far
 * @returns {{state: State, seconds: number}[]}
 */
function listStretches({ spans }, now) {
  return spans.map(([state, since], place) => {
    const until = place + 1 < spans.length ? spans[place + 1][1] : now;
    return { state, seconds: Math.max(0, until - since) };
  });
}

/** The seconds in each state, added up. @param {Pick<Summary, "spans">} request @param {number} now */
export function addStretches(request, now) {
  /** @type {Record<string, number>} */
  const sums = { waiting: 0, thinking: 0, answering: 0 };
  for (const { state, seconds } of listStretches(request, now)) sums[state] = (sums[state] ?? 0) + seconds;
  return sums;
}

export class Bar {
  /** @param {boolean} [large] */
  constructor(large = false) {
    this.element = make(large ? "div.bar.large" : "div.bar", { role: "img" });
    this.shown = "";
  }

  /** @param {Summary} request @param {number} now @param {number} [axis] the seconds of the whole width, for bars that are compared */
  draw(request, now, axis = 0) {
    const stretches = listStretches(request, now);
    const shape = stretches.map(({ state }) => state).join();
    if (shape !== this.shown) {
      this.shown = shape;
      this.element.replaceChildren(...stretches.map(({ state }) => swatch(state)));
    }
    const all = stretches.reduce((sum, { seconds }) => sum + seconds, 0) || 1;
    stretches.forEach(({ seconds }, place) => {
      // Through the object model: the policy of the page allows no style in markup.
      /** @type {HTMLElement} */ (this.element.children[place]).style.flexGrow = String((100 * seconds) / all);
    });
    // On one axis, a shorter request has a shorter bar.
    this.element.style.inlineSize = axis > 0 ? `max(0.25rem, ${Math.min(100, (100 * all) / axis)}%)` : "";
    this.element.toggleAttribute("data-open", isOpen(request));
    const sums = addStretches(request, now);
    const words = Object.entries(sums).filter(([, seconds]) => seconds > 0).map(([state, seconds]) => `${state} ${formatExactly(seconds)}`);
    this.element.setAttribute("aria-label", words.join(", ") || "not begun");
  }
}

/** The colour of a state. @param {string} state */
export function swatch(state) {
  return make("i.swatch", { "data-state": state, "aria-hidden": "true" });
}

/** What the colours mean. */
export function makeLegend() {
  return make("ul.legend", { "aria-label": "Colours" },
    ...["waiting", "thinking", "answering"].map((state) => make("li", {}, swatch(state), state)));
}

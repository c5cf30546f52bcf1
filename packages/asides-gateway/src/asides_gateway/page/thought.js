// @ts-check
// One thought, in the margin: what it is, how long it took, and its words. It is open while the model thinks.

import { make, reachable } from "./dom.js";
import { count, formatSeconds } from "./figures.js";
import { MarkdownStream } from "./markdown.js";
import { readChoice } from "./preferences.js";

const KINDS = /** @type {Record<string, string>} */ ({ summary: "summary", raw: "raw", hidden: "hidden" });

/** Whether the reader wants finished thoughts open: by choice, else where there is a margin for them. */
export function wantsOpen() {
  const choice = readChoice("thoughts");
  return choice === "auto" ? window.matchMedia("(min-width: 64rem)").matches : choice === "open";
}

export class Thought {
  /** @param {string} kind @param {boolean} live */
  constructor(kind, live) {
    this.kind = kind;
    this.live = live;
    this.chosen = false;
    this.began = performance.now();
    this.seconds = /** @type {number | null} */ (null);
    this.tokens = /** @type {number | null} */ (null);
    this.text = "";
    this.state = make("b", {}, "");
    this.figures = make("span.num", {}, "");
    this.words = make("div.text");
    this.body = reachable(make("div.body", { role: "group", "aria-label": "Thinking" }, this.words));
    this.stream = new MarkdownStream(this.words);
    this.element = /** @type {HTMLDetailsElement} */ (make("details.thought", { open: live || wantsOpen() },
      make("summary", { onclick: () => { this.chosen = true; } }, make("span.dot", { "aria-hidden": "true" }), this.state, this.figures),
      this.body));
    this.element.dataset.kind = kind;
    this.stuck = true;
    this.body.addEventListener("scroll", () => {
      this.stuck = this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < 24;
    }, { passive: true });
    this.tick();
  }

  /** @param {string} text */
  append(text) {
    this.text += text;
    this.stream.append(text);
  }

  /** Draw what came. A long thought scrolls inside of itself. */
  flush() {
    this.stream.flush();
    if (this.stuck && this.live) this.body.scrollTop = this.body.scrollHeight;
  }

  /** Say how long it has been at it. */
  tick() {
    const parts = [];
    if (this.live) {
      this.element.dataset.live = "";
      this.state.textContent = "Thinking";
      parts.push(formatSeconds(Math.max(1, (performance.now() - this.began) / 1000)));
      if (KINDS[this.kind]) parts.push(KINDS[this.kind]);
    } else {
      delete this.element.dataset.live;
      this.state.textContent = this.seconds === null ? "Thought" : `Thought for ${formatSeconds(this.seconds)}`;
      if (KINDS[this.kind]) parts.push(KINDS[this.kind]);
      if (this.tokens) parts.push(count(this.tokens, "token"));
    }
    const line = parts.join(" · ");
    if (this.figures.textContent !== line) this.figures.textContent = line;
  }

  /**
   * It is over. @param {{seconds?: number | null, tokens?: number | null, cut?: boolean}} figures
   */
  end({ seconds = null, tokens = null, cut = false }) {
    const was = this.live;
    this.live = false;
    this.seconds = seconds ?? (was ? (performance.now() - this.began) / 1000 : null);
    this.tokens = tokens;
    this.stream.end();
    if (!this.text.trim() && !this.words.childNodes.length) {
      const why = this.kind !== "hidden" ? "The words of this thought were not kept." :
        was ? "The provider keeps the words of this thought to itself." : "The words of this thought are not here: they were not kept, or never shown.";
      this.words.append(make("p.absent", {}, why));
      this.element.dataset.empty = "";
      if (!this.chosen) this.element.open = false;
    } else if (was && !this.chosen && !cut) this.element.open = wantsOpen();
    this.tick();
  }
}

// @ts-check
// Announces events to screen readers in sentences: a stream of tokens would be read as noise.

import { make } from "./dom.js";

const END = /[.!?…:](?=["')\]»”]*\s)|\n|[。！？]/g;
const KEPT = 8;

export class Announcer {
  /** @param {HTMLElement} region an element with aria-live */
  constructor(region) {
    this.region = region;
    this.waiting = "";
    this.timer = 0;
    /** @type {string[]} */
    this.sentences = [];
  }

  /** Text of the answer, in any pieces: whole sentences are said. @param {string} text */
  feed(text) {
    this.waiting += text;
    let end = -1;
    for (const found of this.waiting.matchAll(END)) end = found.index + found[0].length;
    if (end < 0) return;
    const said = this.waiting.slice(0, end);
    this.waiting = this.waiting.slice(end);
    this.say(said);
  }

  /** Say the rest of the answer. */
  end() {
    this.say(this.waiting);
    this.waiting = "";
  }

  /** Say a sentence soon; sentences that come close together are merged. @param {string} text */
  say(text) {
    const plain = text.replace(/[*_`#>|]+/g, " ").replace(/\s+/g, " ").trim();
    if (!plain) return;
    this.sentences.push(plain);
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.region.append(make("p", { dir: "auto" }, this.sentences.splice(0).join(" ")));
      while (this.region.childNodes.length > KEPT) this.region.firstChild?.remove();
    }, 600);
  }
}

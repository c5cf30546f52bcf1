// @ts-check
// Knows whether the gateway answers. While it does not, a banner says so and the page asks again by itself.

import { ApiError, get } from "./api.js";
import { show } from "./dom.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

export class Connection {
  /** @param {HTMLElement} banner @param {(problem: ApiError) => void} onKey called when the gateway wants another key */
  constructor(banner, onKey) {
    this.banner = banner;
    this.onKey = onKey;
    this.gone = false;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** @type {() => void} */
    this.hurry = () => {};
    window.addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.hurry(); });
  }

  /** Call a function each time the gateway is back. @param {() => void} listener @returns {() => void} to end that */
  onBack(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Take a problem that is not the view's own; return whether it was. @param {unknown} problem */
  takes(problem) {
    if (!(problem instanceof ApiError)) return false;
    if (problem.kind === "left") return true;
    if (problem.kind === "key") this.onKey(problem);
    else if (problem.kind === "gone") void this.waitForReturn();
    else return false;
    return true;
  }

  /** Retry until the gateway answers. */
  async waitForReturn() {
    if (this.gone) return;
    this.gone = true;
    let wait = FIRST_WAIT;
    this.say("The gateway does not answer. Trying again; nothing you typed is lost.");
    for (;;) {
      await this.sleep(wait);
      try {
        await get("/session");
        break;
      } catch (problem) {
        if (problem instanceof ApiError && problem.kind !== "gone") {
          if (problem.kind === "key") this.onKey(problem);
          break;
        }
        wait = Math.min(wait * 1.6, LONGEST_WAIT);
      }
    }
    this.gone = false;
    this.say("");
    for (const listener of [...this.listeners]) listener();
  }

  /** @param {number} wait */
  sleep(wait) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.hurry = () => { clearTimeout(timer); resolve(undefined); };
    });
  }

  /** Show a word of the page; "": none. @param {string} text */
  say(text) {
    this.banner.textContent = text;
    show(this.banner, text !== "");
  }
}

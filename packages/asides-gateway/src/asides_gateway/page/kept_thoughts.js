// @ts-check
// The thinking that this page saw: in memory, and in this browser if the reader chose so. The gateway has no part in it.

import { keepChoice, readChoice } from "./preferences.js";

const START = "asides.thought.";
const MOST = 3_000_000;

export class KeptThoughts {
  constructor() {
    /** @type {Map<string, string>} */
    this.seen = new Map();
  }

  get keeps() {
    return readChoice("keep") === "on";
  }

  /** @param {string} key conversation/message/thought @returns {string} */
  get(key) {
    const seen = this.seen.get(key);
    if (seen !== undefined || !this.keeps) return seen ?? "";
    try {
      return localStorage.getItem(START + key) ?? "";
    } catch {
      return "";
    }
  }

  /** @param {string} key @param {string} text */
  set(key, text) {
    this.seen.set(key, text);
    if (this.keeps) write(key, text);
  }

  /** Keep thinking from now on, and what was seen so far; or keep none, and forget it. @param {boolean} keeps */
  choose(keeps) {
    keepChoice("keep", keeps ? "on" : "off");
    if (keeps) for (const [key, text] of this.seen) write(key, text);
    else forgetStored("");
  }

  /** Forget a conversation; "": all of them. @param {string} conversation */
  forget(conversation) {
    const start = conversation ? `${conversation}/` : "";
    for (const key of [...this.seen.keys()]) if (key.startsWith(start)) this.seen.delete(key);
    forgetStored(start);
  }
}

/** @returns {string[]} the keys of stored thoughts */
function listStored() {
  return Object.keys(localStorage).filter((key) => key.startsWith(START));
}

/** @param {string} start */
function forgetStored(start) {
  try {
    for (const key of listStored()) if (key.startsWith(START + start)) localStorage.removeItem(key);
  } catch {
    // Without storage nothing was kept.
  }
}

/** @param {string} key @param {string} text */
function write(key, text) {
  try {
    let size = text.length;
    for (const each of listStored()) {
      size += localStorage.getItem(each)?.length ?? 0;
      // Storage has no order; whatever is found first makes room.
      if (size > MOST) localStorage.removeItem(each);
    }
    if (text.length <= MOST) localStorage.setItem(START + key, text);
  } catch {
    // The storage is full, or there is none: it lasts until the page is left.
  }
}

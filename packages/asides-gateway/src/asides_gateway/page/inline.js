// @ts-check
// The inside of a line of Markdown: code, emphasis, links. It makes text nodes and seven kinds of elements; whatever else
// a model writes, markup included, is text. Time goes with the length of the text.

import { makeFormula } from "./formula.js";

/** A mark that may begin something: the index of its text node among the nodes. @typedef {{mark: string, count: number, at: number}} Opener */

const SPECIAL = /[\\`*_~[\]!<\n$]|https?:\/\//g;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}]/u;
const ADDRESS = /https?:\/\/[^\s<>"'`\]*]+/y;
const POINTED = /<(https?:\/\/[^\s<>]+)>/y;
const TARGET = /\(\s*(?!\s)<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?\s*(?:(?<=\s)(?:"[^"\n]*"|'[^'\n]*')\s*)?\)/y;
const DEEPEST = 60;
const LONGEST_FORMULA = 4000;
const LONGEST_SHORT = 300;
// Between single dollars: what has a sign of TeX, or is one name or number. Prices are not.
const FORMULA = /[\\^_={}<>+*/|-]|^\p{L}\p{N}?$|^\p{L}\(\p{L}\)$/u;

/**
 * @param {string} text
 * @param {boolean} [open] whether more of it may come: what is not closed yet is then drawn as if it were
 * @returns {DocumentFragment}
 */
export function renderInline(text, open = false) {
  const line = new InlineParser(text, open);
  line.parse();
  const made = document.createDocumentFragment();
  made.append(...line.nodes);
  return made;
}

/** A text without the characters of this set at its end. @param {string} text @param {string} set */
export function dropEnd(text, set) {
  let end = text.length;
  while (end && set.includes(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

/** An address that may be a link: http and https only. @param {string} address @returns {string | null} */
function safeAddress(address) {
  if (!/^https?:\/\//i.test(address)) return null;
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/** @param {string} address @param {Node[]} content */
function makeLink(address, content) {
  const link = document.createElement("a");
  link.href = address;
  link.rel = "noopener noreferrer nofollow";
  link.target = "_blank";
  link.title = address;
  link.append(...content);
  // A link inside of a link is its text.
  for (const inner of link.querySelectorAll("a")) inner.replaceWith(...inner.childNodes);
  return link;
}

class InlineParser {
  /** @param {string} text @param {boolean} open */
  constructor(text, open) {
    this.text = text;
    this.open = open;
    /** @type {Node[]} */
    this.nodes = [];
    /** @type {Opener[]} */
    this.openers = [];
    /** Lengths of runs of backticks that have no partner further on. @type {Set<number>} */
    this.alone = new Set();
    /** Ends of formulas that do not come any more. @type {Set<string>} */
    this.missing = new Set();
    this.plain = "";
    this.at = 0;
  }

  flush() {
    if (this.plain) this.nodes.push(document.createTextNode(this.plain));
    this.plain = "";
  }

  parse() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(text);
      const stop = found ? found.index : text.length;
      this.plain += text.slice(this.at, stop);
      this.at = stop;
      if (found) this.take(text[stop]);
    }
    this.flush();
    if (this.open) this.closeLastStrong();
  }

  /** @param {string} sign */
  take(sign) {
    if (sign === "$" || (sign === "\\" && "([".includes(this.text[this.at + 1] ?? " "))) {
      if (this.takeFormula()) return;
      sign = sign === "$" ? "" : sign;
    }
    if (sign === "") {
      this.plain += "$";
      this.at += 1;
    } else if (sign === "\\") this.takeEscape();
    else if (sign === "`") this.takeCode();
    else if (sign === "\n") this.takeBreak();
    else if (sign === "*" || sign === "_" || sign === "~") this.takeEmphasis(sign);
    else if (sign === "[" || (sign === "!" && this.text[this.at + 1] === "[")) this.takeBracket(sign);
    else if (sign === "]") this.takeClosingBracket();
    else if (sign === "<") this.takePointed();
    else if (sign === "h") this.takeAddress();
    else {
      this.plain += sign;
      this.at += 1;
    }
  }

  takeEscape() {
    const next = this.text[this.at + 1] ?? "";
    if (PUNCTUATION.test(next)) this.plain += next;
    else if (next === "\n") this.pushBreak();
    else this.plain += `\\${next}`;
    this.at += 1 + next.length;
  }

  /** Take a formula, if one begins here. @returns {boolean} */
  takeFormula() {
    const { text, at } = this;
    const begin = text.startsWith("$$", at) ? "$$" : text[at] === "$" ? "$" : text.slice(at, at + 2);
    const end = { "\\(": "\\)", "\\[": "\\]" }[begin] ?? begin;
    const start = at + begin.length;
    const close = begin === "$" ? this.findDollar(start) : this.missing.has(end) ? -1 : text.indexOf(end, start);
    if (close < 0 && begin !== "$") this.missing.add(end);
    const tex = close < 0 ? "" : text.slice(start, close);
    if (!tex.trim() || tex.length > LONGEST_FORMULA) return false;
    this.flush();
    this.nodes.push(makeFormula(tex, begin === "$$" || begin === "\\["));
    this.at = close + end.length;
    return true;
  }

  /** The dollar that ends a formula in a line; -1: this one is money, or a name. @param {number} start */
  findDollar(start) {
    const { text } = this;
    if (/[\s$]/.test(text[start] ?? " ") || WORD.test(text[start - 2] ?? " ")) return -1;
    for (let at = text.indexOf("$", start); at > start && at - start < LONGEST_SHORT; at = text.indexOf("$", at + 1)) {
      if (text[at - 1] === "\\") continue;
      const tex = text.slice(start, at);
      const ends = !/\s$/.test(tex) && !WORD.test(text[at + 1] ?? " ") && !tex.includes("\n");
      return ends && FORMULA.test(tex) ? at : -1;
    }
    return -1;
  }

  takeBreak() {
    this.plain = dropEnd(this.plain, " ");
    this.pushBreak();
    this.at += 1;
  }

  pushBreak() {
    this.flush();
    this.nodes.push(document.createElement("br"));
  }

  takeCode() {
    const { text } = this;
    const start = this.at;
    let end = start;
    while (text[end] === "`") end += 1;
    const size = end - start;
    let close = -1;
    if (!this.alone.has(size)) {
      for (let from = end; ;) {
        const next = text.indexOf("`", from);
        if (next < 0) break;
        let after = next;
        while (text[after] === "`") after += 1;
        if (after - next === size) {
          close = next;
          break;
        }
        from = after;
      }
      if (close < 0) this.alone.add(size);
    }
    if (close < 0 && !(this.open && size < 3 && end < text.length)) {
      this.plain += text.slice(start, end);
      this.at = end;
      return;
    }
    let inside = text.slice(end, close < 0 ? text.length : close).replace(/\n/g, " ");
    if (inside.length > 2 && inside.startsWith(" ") && inside.endsWith(" ") && inside.trim()) inside = inside.slice(1, -1);
    this.flush();
    const code = document.createElement("code");
    code.textContent = inside;
    this.nodes.push(code);
    this.at = close < 0 ? text.length : close + size;
  }

  /** @param {string} sign */
  takeEmphasis(sign) {
    const { text } = this;
    const start = this.at;
    let end = start;
    while (text[end] === sign) end += 1;
    let count = end - start;
    const before = text[start - 1] ?? " ";
    const after = text[end] ?? " ";
    this.at = end;
    const inWord = sign === "_" && WORD.test(before) && WORD.test(after);
    if (count > 3 || inWord || (sign === "~" && count !== 2)) {
      this.plain += text.slice(start, end);
      return;
    }
    const opens = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const closes = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    while (closes && count > 0) {
      const where = this.openers.findLastIndex((each) => each.mark === sign);
      if (where < 0) break;
      const opener = this.openers[where];
      const size = Math.min(2, count, opener.count);
      const tag = sign === "~" ? "s" : size === 2 ? "strong" : "em";
      this.wrap(where, document.createElement(tag), opener.count - size);
      count -= size;
    }
    if (count > 0) this.pushMark(sign, count, opens);
  }

  /** Text that may turn out to begin something. @param {string} mark @param {number} count @param {boolean} opens */
  pushMark(mark, count, opens) {
    const text = mark.repeat(count);
    if (!opens || this.openers.length >= DEEPEST) {
      this.plain += text;
      return;
    }
    this.flush();
    this.openers.push({ mark, count, at: this.nodes.length });
    this.nodes.push(document.createTextNode(text));
  }

  /** Put what follows an opener into an element; `left` signs of its mark stay. @param {number} where @param {HTMLElement} element @param {number} left */
  wrap(where, element, left) {
    this.flush();
    const opener = this.openers[where];
    this.openers.length = where;
    element.append(...this.nodes.splice(opener.at + 1));
    if (left > 0) {
      /** @type {Text} */ (this.nodes[opener.at]).data = opener.mark.repeat(left);
      this.openers.push({ ...opener, count: left });
      this.nodes.push(element);
    } else {
      this.nodes[opener.at] = element;
    }
  }

  /** @param {string} sign */
  takeBracket(sign) {
    const mark = sign === "!" ? "![" : "[";
    this.at += mark.length;
    this.pushMark(mark, 1, true);
  }

  takeClosingBracket() {
    this.at += 1;
    const where = this.openers.findLastIndex((each) => each.mark === "[" || each.mark === "![");
    if (where < 0) {
      this.plain += "]";
      return;
    }
    TARGET.lastIndex = this.at;
    const target = this.text[this.at] === "(" ? TARGET.exec(this.text) : null;
    const address = target ? safeAddress(target[1]) : null;
    if (!target || address === null) {
      this.openers.splice(where, 1);
      this.plain += "]";
      return;
    }
    this.flush();
    const opener = this.openers[where];
    this.openers.length = where;
    const content = this.nodes.splice(opener.at).slice(1);
    // An image is a link to it: nothing of another host loads by itself.
    if (!content.length) content.push(document.createTextNode(address));
    this.nodes.push(makeLink(address, content));
    // A link holds no other link, so brackets that are still open will not become one.
    this.openers = this.openers.filter((each) => each.mark !== "[");
    this.at = TARGET.lastIndex;
  }

  takePointed() {
    POINTED.lastIndex = this.at;
    const found = POINTED.exec(this.text);
    const address = found ? safeAddress(found[1]) : null;
    if (!found || address === null) {
      this.plain += "<";
      this.at += 1;
      return;
    }
    this.flush();
    this.nodes.push(makeLink(address, [document.createTextNode(found[1])]));
    this.at = POINTED.lastIndex;
  }

  takeAddress() {
    ADDRESS.lastIndex = this.at;
    const found = ADDRESS.exec(this.text);
    let shown = found ? dropEnd(found[0], ".,;:!?…»”’_~") : "";
    // A bracket that the address did not open belongs to the sentence around it.
    let surplus = shown.split(")").length - shown.split("(").length;
    for (; surplus > 0 && shown.endsWith(")"); surplus -= 1) shown = dropEnd(shown.slice(0, -1), ".,;:!?");
    const address = WORD.test(this.text[this.at - 1] ?? " ") ? null : safeAddress(shown);
    if (address === null) {
      this.plain += "h";
      this.at += 1;
      return;
    }
    this.flush();
    this.nodes.push(makeLink(address, [document.createTextNode(shown)]));
    this.at += shown.length;
  }

  /** While text comes, bold is bold from its first word on. */
  closeLastStrong() {
    const where = this.openers.findLastIndex((each) => each.mark === "*" && each.count === 2);
    if (where >= 0) this.wrap(where, document.createElement("strong"), 0);
  }
}

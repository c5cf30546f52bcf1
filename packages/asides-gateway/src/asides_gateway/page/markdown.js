// @ts-check
// Draws Markdown as it arrives: paragraphs, headings, lists, quotes, code, tables. A finished block is never touched again;
// only the last line is redrawn, so that a long answer costs no more per word than a short one.
// Everything is text nodes. Each line runs in its own direction by style (unicode-bidi: plaintext); only lists and quotes, which
// have a side, carry dir="auto", since a browser looks for the first letter again with each change.
// Not here: the inside of a line (inline.js).

import { colourCode } from "./code_colours.js";
import { copyButton, make, reachable } from "./dom.js";
import { dropEnd, renderInline } from "./inline.js";

/**
 * A block that holds blocks. An item's content begins `indent` columns in, its mark `start` columns.
 * @typedef {{type: "root" | "quote" | "item", node: HTMLElement, list?: HTMLElement, mark?: string, indent: number, start: number}} Container
 */
/** A block that holds lines. @typedef {Paragraph | Code | Table} Leaf */
/** @typedef {{stack: Container[], ends: [HTMLElement, ChildNode | null][], leaf: Leaf | null, leafMark: any, blank: boolean, level: number}} Snapshot */

const LONG = 2048;
const CHUNK = 80;
const DEEPEST = 12;
// No two neighbours of a pattern may match the same characters: then a line of them takes quadratic time, or worse.
const HELD = /^(?:[-*+#>|`~_=:\s]+|\s*\d{1,9}[.)]?\s*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(?![ \t])(.*))?$/;
const FENCE = /^( {0,3})(`{3,}(?!`)|~{3,}(?!~))[ \t]*(?![ \t])([^`]*)$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
const QUOTE = /^ {0,3}> ?/;
const DASHES = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?$/;

/** The words of a heading without the marks that may close it: "Two ##". @param {string} text */
function dropClosingMarks(text) {
  const words = dropEnd(text, "#");
  return words === "" || (words !== text && /[ \t]$/.test(words)) ? words.trimEnd() : text;
}

/** Text of one paragraph. Very long ones are cut into parts with a layout of their own, so that only the last is drawn again. */
class Paragraph {
  /** @param {HTMLElement} node */
  constructor(node) {
    this.node = node;
    this.tail = node;
    this.raw = "";
    this.done = 0;
    this.open = true;
  }

  /** @param {string} text */
  add(text) {
    this.raw += text;
    while (this.raw.length - this.done > 2 * LONG) {
      const space = this.raw.slice(this.done + LONG, this.done + 2 * LONG).search(/\s/);
      const cut = this.done + LONG + (space < 0 ? LONG : space + 1);
      const part = make("span.part", {}, renderInline(this.raw.slice(this.done, cut)));
      const rest = make("span.part");
      if (this.tail === this.node) this.node.replaceChildren(part, rest);
      else this.tail.replaceWith(part, rest);
      this.tail = rest;
      this.done = cut;
    }
  }

  draw() {
    this.tail.replaceChildren(renderInline(this.raw.slice(this.done).trimEnd(), this.open));
  }

  mark() {
    return this.raw.length;
  }

  /** The caller draws later, or ends, after restoring. @param {number} mark */
  restore(mark) {
    this.raw = this.raw.slice(0, mark);
  }

  end() {
    this.open = false;
    this.draw();
  }
}

/** A block of code, in chunks of lines: a browser lays out again only the last one. */
class Code {
  /** @param {string} language @param {string} fence @param {number} indent @param {number} depth */
  constructor(language, fence, indent, depth) {
    this.fence = fence;
    this.indent = indent;
    this.depth = depth;
    this.language = language;
    this.coloured = false;
    this.box = make("code");
    this.chunk = document.createTextNode("");
    this.lines = 0;
    this.box.append(make("span", {}, this.chunk));
    const label = language ? make("span.language", {}, language) : null;
    const copy = copyButton("quiet", "Copy", () => (this.box.textContent ?? "").replace(/\n$/, ""), { "aria-label": "Copy the code" });
    const pre = reachable(make("pre", { dir: "ltr" }, this.box));
    this.node = make("div.code", {}, make("div.codebar", {}, label, copy), pre);
  }

  /** @param {string} text */
  add(text) {
    if (this.lines >= CHUNK) {
      this.chunk = document.createTextNode("");
      this.box.append(make("span", {}, this.chunk));
      this.lines = 0;
    }
    this.chunk.appendData(text);
    if (text.endsWith("\n")) this.lines += 1;
  }

  draw() {}

  mark() {
    return { chunk: this.chunk, length: this.chunk.data.length, lines: this.lines };
  }

  /** @param {{chunk: Text, length: number, lines: number}} mark */
  restore({ chunk, length, lines }) {
    if (chunk !== this.chunk) this.chunk.parentElement?.remove();
    this.chunk = chunk;
    this.lines = lines;
    chunk.deleteData(length, chunk.data.length - length);
  }

  end() {
    if (!this.coloured) colourCode(this.box, this.language);
    this.coloured = true;
  }
}

class Table {
  /** @param {string[]} head @param {string[]} sides */
  constructor(head, sides) {
    this.sides = sides;
    this.rows = make("tbody");
    const table = make("table", {}, make("thead", {}, this.makeRow("th", head)), this.rows);
    this.node = reachable(make("div.table", {}, table));
  }

  /** @param {string} tag @param {string[]} cells */
  makeRow(tag, cells) {
    const row = make("tr");
    this.sides.forEach((side, index) => {
      const cell = make(tag, { "data-side": side || undefined, scope: tag === "th" ? "col" : undefined });
      cell.append(renderInline(cells[index] ?? ""));
      row.append(cell);
    });
    return row;
  }

  /** @param {string} line */
  add(line) {
    this.rows.append(this.makeRow("td", splitRow(line)));
  }

  draw() {}

  mark() {
    return this.rows.lastChild;
  }

  /** @param {ChildNode | null} mark */
  restore(mark) {
    while (this.rows.lastChild !== mark) this.rows.lastChild?.remove();
  }

  end() {}
}

/** @param {string} line @returns {string[]} */
function splitRow(line) {
  const cells = [""];
  let code = false;
  const inside = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  for (let at = 0; at < inside.length; at += 1) {
    const sign = inside[at];
    if (sign === "\\" && inside[at + 1] === "|") {
      cells[cells.length - 1] += "|";
      at += 1;
    } else if (sign === "|" && !code) cells.push("");
    else {
      if (sign === "`") code = !code;
      cells[cells.length - 1] += sign;
    }
  }
  return cells.map((cell) => cell.trim());
}

/** @param {string} line */
function countIndent(line) {
  return line.length - line.trimStart().length;
}

/** Draws text into an element: `append` as it comes, `flush` when it is to be seen, `end` when it is all there. */
export class MarkdownStream {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    /** @type {Container[]} */
    this.stack = [{ type: "root", node: root, indent: 0, start: 0 }];
    /** @type {Leaf | null} */
    this.leaf = null;
    this.blank = true;
    this.waiting = "";
    this.midLine = false;
    this.level = 2;
    /** @type {Snapshot | null} */
    this.before = null;
  }

  /** @param {string} text */
  append(text) {
    this.waiting += text;
  }

  /** Draw what came since the last time. */
  flush() {
    if (!this.waiting) return;
    this.rollBack();
    const lines = this.waiting.split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) this.takeLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    this.waiting = rest;
    if (!rest) {
      this.leaf?.draw();
      return;
    }
    if (this.midLine) {
      this.leaf?.add(rest);
      this.waiting = "";
    } else if (!HELD.test(rest) || this.leaf instanceof Code) {
      this.before = this.takeSnapshot();
      const read = this.takeLine(rest, true);
      // So much text on one line is a line of its block: it is not read again with each word.
      if (rest.length >= LONG && read) {
        this.midLine = true;
        this.waiting = "";
        this.before = null;
      }
    }
    this.leaf?.draw();
  }

  /** Draw the rest: no more comes. */
  end() {
    this.flush();
    this.rollBack();
    if (this.waiting) this.takeLine(this.waiting);
    this.waiting = "";
    this.closeLeaf();
  }

  /** @returns {Snapshot} */
  takeSnapshot() {
    // Last children rather than counts: a browser counts the children of a long list one by one.
    /** @type {[HTMLElement, ChildNode | null][]} */
    const ends = [];
    for (const each of this.stack) {
      ends.push([each.node, each.node.lastChild]);
      if (each.list) ends.push([each.list, each.list.lastChild]);
    }
    return { stack: [...this.stack], ends, leaf: this.leaf, leafMark: this.leaf?.mark(), blank: this.blank, level: this.level };
  }

  /** Undo the line that was drawn before it was whole. */
  rollBack() {
    const { before } = this;
    if (!before) return;
    this.before = null;
    for (const [node, last] of before.ends) while (node.lastChild !== last) node.lastChild?.remove();
    this.stack = before.stack;
    this.leaf = before.leaf;
    this.blank = before.blank;
    this.level = before.level;
    if (this.leaf) {
      if (this.leaf instanceof Paragraph) this.leaf.open = true;
      this.leaf.restore(before.leafMark);
    }
  }

  closeLeaf() {
    this.leaf?.end();
    this.leaf = null;
  }

  /** Close the containers that a line is not in. @param {number} matched */
  leave(matched) {
    this.closeLeaf();
    this.stack.length = matched;
  }

  get here() {
    return this.stack[this.stack.length - 1];
  }

  /** @param {HTMLElement} node */
  place(node) {
    this.here.node.append(node);
  }

  /**
   * Take one line; `open`: its end is not there yet. Returns whether the line is text of the leaf, so that more of it is too.
   * @param {string} line @param {boolean} [open]
   * @returns {boolean}
   */
  takeLine(line, open = false) {
    const tail = open ? "" : "\n";
    if (this.midLine) {
      this.midLine = false;
      this.leaf?.add(line + tail);
      return true;
    }
    let [rest, matched] = this.match(line.includes("\t") ? line.replace(/^[ \t]+/, (space) => space.replace(/\t/g, "    ")) : line);
    if (this.leaf instanceof Code) {
      if (matched >= this.leaf.depth) return this.takeCode(rest, tail);
      this.leave(matched);
    }
    if (!rest.trim()) {
      this.closeLeaf();
      if (this.stack.slice(matched).some((each) => each.type === "quote")) this.stack.length = matched;
      this.blank = true;
      return false;
    }
    const wasBlank = this.blank;
    this.blank = false;
    for (let depth = this.stack.length; depth < DEEPEST + 1; depth += 1) {
      const opened = this.openContainer(rest, matched);
      if (opened === null) break;
      rest = opened;
      matched = this.stack.length;
      if (!rest.trim()) return false;
    }
    if (this.takeBlock(rest, matched, open)) return false;
    if (this.leaf instanceof Table && matched === this.stack.length && rest.includes("|")) {
      this.leaf.add(rest);
      return false;
    }
    // A line without marks continues the paragraph before it, even without the marks of a quote or an item.
    if (!(this.leaf instanceof Paragraph) || (wasBlank && matched < this.stack.length)) {
      this.leave(matched);
      const paragraph = new Paragraph(make("p"));
      this.place(paragraph.node);
      this.leaf = paragraph;
    }
    this.leaf.add(rest.trimStart() + tail);
    return true;
  }

  /** Walk into the open containers as far as a line belongs to them. @param {string} line @returns {[string, number]} */
  match(line) {
    let rest = line;
    let at = 1;
    for (; at < this.stack.length; at += 1) {
      const each = this.stack[at];
      if (each.type === "quote") {
        const mark = QUOTE.exec(rest);
        if (!mark) break;
        rest = rest.slice(mark[0].length);
      } else if (rest.trim()) {
        const indent = countIndent(rest);
        // Two columns are enough for an item in an item, which is how models write them.
        const near = indent >= each.start + 2 && ITEM.test(rest.slice(indent));
        if (indent < each.indent && !near) break;
        rest = rest.slice(Math.min(indent, each.indent));
      }
    }
    return [rest, at];
  }

  /** @param {string} rest @param {string} tail @returns {boolean} */
  takeCode(rest, tail) {
    const code = /** @type {Code} */ (this.leaf);
    const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(rest);
    if (closing && closing[1][0] === code.fence[0] && closing[1].length >= code.fence.length) {
      if (tail) this.closeLeaf();
      return false;
    }
    if (!tail && /^\s*[`~]+$/.test(rest)) return false;
    code.add(rest.slice(Math.min(countIndent(rest), code.indent)) + tail);
    return true;
  }

  /** Open a quote or an item, and return the rest of the line; null: the line opens none. @param {string} rest @param {number} matched */
  openContainer(rest, matched) {
    const quote = QUOTE.exec(rest);
    if (quote) {
      this.leave(matched);
      const node = make("blockquote", { dir: "auto" });
      this.place(node);
      this.stack.push({ type: "quote", node, indent: 0, start: 0 });
      return rest.slice(quote[0].length);
    }
    const item = RULE.test(rest) ? null : ITEM.exec(rest);
    if (!item) return null;
    const mark = item[2];
    const number = Number.parseInt(mark, 10);
    const interrupts = this.leaf instanceof Paragraph && matched === this.stack.length;
    const empty = !rest.slice(item[0].length).trim();
    if (interrupts && (empty || (number > 1 && this.here.type !== "item"))) return null;
    this.leave(matched);
    const kind = Number.isNaN(number) ? mark : mark.slice(-1);
    let list = /** @type {HTMLElement | null} */ (this.here.node.lastElementChild);
    if (!list || list.dataset.mark !== kind) {
      list = make(Number.isNaN(number) ? "ul" : "ol", { dir: "auto", "data-mark": kind });
      if (number !== 1 && list instanceof HTMLOListElement) list.start = number;
      this.place(list);
    }
    const node = make("li");
    list.append(node);
    const start = item[1].length;
    this.stack.push({ type: "item", node, list, mark: kind, start, indent: start + mark.length + Math.max(item[3].length, 1) });
    return rest.slice(item[0].length);
  }

  /** Take a line that is a block, or begins one; return whether it was. @param {string} rest @param {number} matched @param {boolean} open */
  takeBlock(rest, matched, open) {
    const heading = HEADING.exec(rest);
    if (heading) {
      this.leave(matched);
      // The page has its own headings of the first and second level; below, no level is left out.
      const level = Math.min(heading[1].length + 2, this.level + 1, 6);
      this.level = level;
      const text = dropClosingMarks((heading[2] ?? "").trim());
      this.place(make(`h${level}`, { "data-level": heading[1].length }, renderInline(text, open)));
      return true;
    }
    const fence = FENCE.exec(rest);
    if (fence) {
      this.leave(matched);
      const code = new Code(fence[3].trim().split(/\s/)[0].slice(0, 40), fence[2], fence[1].length, this.stack.length);
      this.place(code.node);
      this.leaf = code;
      return true;
    }
    if (RULE.test(rest)) {
      this.leave(matched);
      this.place(make("hr"));
      return true;
    }
    return this.takeTableHead(rest, matched, open);
  }

  /** Turn a paragraph of one line into the head of a table. @param {string} rest @param {number} matched @param {boolean} open */
  takeTableHead(rest, matched, open) {
    const { leaf } = this;
    if (!(leaf instanceof Paragraph) || matched < this.stack.length || !DASHES.test(rest)) return false;
    const line = leaf.raw.trim();
    if (line.includes("\n") || !(line.includes("|") && rest.includes("-"))) return false;
    const head = splitRow(line);
    const dashes = splitRow(rest);
    if (head.length !== dashes.length || open) return false;
    const sides = dashes.map((each) => (each.endsWith(":") ? (each.startsWith(":") ? "center" : "end") : ""));
    const table = new Table(head, sides);
    leaf.node.replaceWith(table.node);
    this.leaf = table;
    return true;
  }
}

/** Draw a whole text. @param {HTMLElement} root @param {string} text */
export function renderMarkdown(root, text) {
  const stream = new MarkdownStream(root);
  stream.append(text);
  stream.end();
  return root;
}

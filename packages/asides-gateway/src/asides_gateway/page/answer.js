// @ts-check
// One answer: rows of a thought in the margin and, beside it, the blocks that it led to: text, calls, results, notices.
// The same object draws a kept answer and one that arrives.

import { copyButton, make, put } from "./dom.js";
import { makeCall, makeFile, putResult } from "./call.js";
import { count, formatCost, formatExactly } from "./figures.js";
import { MarkdownStream } from "./markdown.js";
import { Thought } from "./thought.js";

/** @typedef {import("./shapes.js").Message} Message */
/** @typedef {import("./shapes.js").Block} Block */
/** @typedef {import("./shapes.js").Notice} Notice */

/** Notices about a request that was refused, or failed, and went through after all. */
const MENDED = /^(request_repaired|fell_back|thoughts_rejected|thinking_paused|recover_.*|not_recovered)$/;

export class Answer {
  /** @param {boolean} live */
  constructor(live) {
    this.live = live;
    this.rows = make("div.rows");
    this.notices = make("div.notices");
    this.foot = make("div.answer-foot");
    this.element = make("article.answer", { "aria-label": "Answer" }, make("h2.unseen", {}, "Answer"), this.rows, this.notices, this.foot);
    if (live) this.element.dataset.live = "";
    /** @type {{margin: HTMLElement, column: HTMLElement} | null} */
    this.row = null;
    /** @type {Map<string, Thought>} */
    this.thoughts = new Map();
    /** @type {Map<string, {node: HTMLElement, stream: MarkdownStream, text: string[]}>} */
    this.texts = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.calls = new Map();
    this.length = 0;
  }

  /** The answer without its thinking and commentary. */
  get plainText() {
    return [...this.texts.values()].filter((each) => !each.node.classList.contains("commentary")).map((each) => each.text.join("")).join("\n\n").trim();
  }

  get isEmpty() {
    return this.row === null;
  }

  openRow() {
    const margin = make("div.margin");
    const column = make("div.column");
    // The thought comes first: that is its place in time, for those who hear the page, and on a phone.
    this.rows.append(make("div.row", {}, margin, column));
    this.row = { margin, column };
    return this.row;
  }

  get column() {
    return (this.row ?? this.openRow()).column;
  }

  /** @param {string} key the block @param {string} kind @param {string} text */
  think(key, kind, text) {
    let thought = this.thoughts.get(key);
    if (!thought) {
      const row = this.row && !this.row.column.childNodes.length ? this.row : this.openRow();
      thought = new Thought(kind, this.live);
      this.thoughts.set(key, thought);
      row.margin.append(thought.element);
    }
    thought.append(text);
    return thought;
  }

  /** @param {string} key @param {string} text @param {boolean} commentary whether it was said on the way to the answer */
  write(key, text, commentary = false) {
    let part = this.texts.get(key);
    if (!part) {
      const node = make(commentary ? "div.text.commentary" : "div.text", commentary ? { role: "note", "aria-label": "Commentary" } : {});
      part = { node, stream: new MarkdownStream(node), text: [] };
      this.texts.set(key, part);
      this.column.append(node);
    }
    part.text.push(text);
    part.stream.append(text);
    this.length += text.length;
  }

  /** Take a text back: it was thinking, and comes again as a thought. @param {string} key the block */
  takeBack(key) {
    const part = this.texts.get(key);
    if (!part) return;
    part.stream.end();
    part.node.remove();
    this.texts.delete(key);
    for (const text of part.text) this.length -= text.length;
  }

  /** @param {{id: string, name: string, arguments: unknown}} call */
  call(call) {
    const card = makeCall(call);
    this.calls.set(call.id, card);
    this.column.append(card);
  }

  /** @param {import("./shapes.js").ResultBlock} result */
  result(result) {
    let card = this.calls.get(result.id);
    if (!card) {
      card = makeCall({ id: result.id, name: result.name ?? "tool", arguments: "" });
      this.calls.set(result.id, card);
      this.column.append(card);
    }
    putResult(card, result);
  }

  /** What was changed on the way. What was refused and mended is shown; the rest can be opened. @param {Notice} notice */
  notice(notice) {
    const line = make("p.notice", { dir: "auto" }, make("b", {}, notice.code.replaceAll("_", " ")), notice.detail && ` ${notice.detail}`);
    if (MENDED.test(notice.code)) {
      this.notices.prepend(line);
      return;
    }
    let rest = this.notices.querySelector("details");
    if (!rest) {
      rest = /** @type {HTMLDetailsElement} */ (make("details", {}, make("summary")));
      this.notices.append(rest);
    }
    rest.append(line);
    const summary = /** @type {HTMLElement} */ (rest.firstElementChild);
    summary.textContent = count(rest.childElementCount - 1, "notice");
  }

  /** Draw what came since the last time. */
  flush() {
    for (const thought of this.thoughts.values()) if (thought.live) thought.flush();
    for (const part of this.texts.values()) part.stream.flush();
  }

  tick() {
    for (const thought of this.thoughts.values()) if (thought.live) thought.tick();
  }

  /** Nothing more comes. @param {boolean} [cut] whether it broke off */
  end(cut = false) {
    for (const thought of this.thoughts.values()) if (thought.live) thought.end({ cut });
    for (const part of this.texts.values()) part.stream.end();
    this.live = false;
    delete this.element.dataset.live;
  }

  /** Draw the blocks of a kept message. @param {Message} message @param {(index: number) => string} seen words of thoughts that this page saw */
  add(message, seen) {
    let thoughts = 0;
    message.blocks.forEach((block, index) => {
      const key = `${message.id}.${index}`;
      if (block.type === "thought") {
        const thought = this.think(key, block.kind, block.text || seen(thoughts));
        thoughts += 1;
        thought.end({ seconds: block.seconds, tokens: block.tokens });
      } else if (block.type === "text") this.write(key, block.text, block.commentary);
      else if (block.type === "call") this.call(block);
      else if (block.type === "result") this.result(block);
      else this.column.append(makeFile(block));
    });
    for (const notice of message.notices ?? []) this.notice(notice);
  }

  /**
   * The line below: figures, and what can be done.
   * @param {Pick<Message, "model" | "usage" | "cost" | "timing">} figures
   * @param {HTMLElement[]} acts
   */
  drawFoot({ model, usage, cost, timing }, acts) {
    const parts = [];
    if (timing?.first_word) parts.push(`first word after ${formatExactly(timing.first_word)}`);
    if (usage?.output) parts.push(`${count(usage.output, "token")}${usage.thinking ? `, ${count(usage.thinking, "of them thinking", "of them thinking")}` : ""}`);
    if (typeof cost === "number") parts.push(formatCost(cost));
    if (model) parts.unshift(model);
    this.foot.replaceChildren();
    put(this.foot, make("span.num.figures", {}, parts.join(" · ")));
    const copy = copyButton("quiet", "Copy", () => this.plainText, { "aria-label": "Copy the answer, without its thinking" });
    put(this.foot, make("span.acts", {}, this.plainText ? copy : null, ...acts));
  }

  /** A word about how it went, with what to do. @param {string} text @param {HTMLElement[]} acts @param {boolean} [bad] */
  tell(text, acts, bad = false) {
    this.column.append(make(bad ? "div.told.fault" : "div.told", { role: bad ? "alert" : undefined }, make("p", { dir: "auto" }, text), ...acts));
  }
}

// @ts-check
// One question: its text, and below it what can be done with it. It can be edited in place.

import { makeFile } from "./call.js";
import { button, make } from "./dom.js";
import { renderMarkdown } from "./markdown.js";

/** What the gateway asks in our name to continue an answer. It is drawn as a line, since no person wrote it. */
const GO_ON = "Please go on exactly where you stopped.";

/** The words of a question, and the names of the text files that follow them. @param {string} text @returns {{words: string, files: string[]}} */
function splitFiles(text) {
  const files = [];
  let words = text;
  while (words.endsWith("</file>")) {
    const start = words.lastIndexOf('<file name="');
    const found = start < 0 ? null : /^<file name="([^"\n]{0,200})">/.exec(words.slice(start, start + 220));
    if (!found) break;
    files.unshift(found[1]);
    words = words.slice(0, start).trimEnd();
  }
  return { words, files };
}

/**
 * @typedef {object} QuestionActs
 * @property {(question: Question, text: string) => void} onEdit ask this instead, in a fork
 * @property {(question: Question) => void} onFork
 */

export class Question {
  /** @param {number | null} id null: the gateway has not reported it yet @param {import("./shapes.js").Block[]} blocks @param {QuestionActs} acts */
  constructor(id, blocks, acts) {
    this.id = id;
    this.acts = acts;
    this.text = blocks.map((block) => (block.type === "text" ? block.text : "")).filter(Boolean).join("\n\n");
    const { words, files } = splitFiles(this.text);
    this.body = renderMarkdown(make("div.text"), words);
    for (const name of files) this.body.append(makeFile({ type: "file", name }));
    for (const block of blocks) if (block.type === "file" || block.type === "unknown") this.body.append(makeFile(block));
    this.bubble = make("div.bubble", {}, this.body);
    this.edit = button("quiet", "Edit", () => this.openEditor(), { "aria-label": "Edit this question" });
    const fork = button("quiet", "Fork", () => acts.onFork(this), { "aria-label": "Fork before this question" });
    // A question with files would lose them in a fork.
    this.hasFiles = blocks.some((block) => block.type === "file");
    this.bar = make("div.acts", { hidden: this.hasFiles }, this.edit, fork);
    const isLine = this.text === GO_ON && blocks.length === 1;
    this.element = isLine ? make("div.question.goes-on", {}, make("p", {}, "continued")) :
      make("div.question", { role: "group", "aria-label": "Question" }, make("h2.unseen", {}, "Question"), this.bubble, this.bar);
  }

  openEditor() {
    if (this.hasFiles || this.element.querySelector("form") || !this.bubble.isConnected) return;
    const field = /** @type {HTMLTextAreaElement} */ (make("textarea.field", { value: this.text, rows: 3, dir: "auto", "aria-label": "Question" }));
    const grow = () => {
      field.style.height = "auto";
      field.style.height = `${field.scrollHeight + 2}px`;
    };
    const close = () => {
      form.replaceWith(this.bubble, this.bar);
      this.edit.focus();
    };
    const ask = () => {
      if (!field.value.trim()) return;
      form.replaceWith(this.bubble, this.bar);
      this.acts.onEdit(this, field.value);
    };
    field.addEventListener("input", grow);
    field.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter" && !event.shiftKey) ask();
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    const form = make("form.editor", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); ask(); } }, field,
      make("p.note", {}, "It is asked in a fork; this conversation stays as it is."),
      make("div.row", {}, make("button.solid", { type: "submit" }, "Ask again"), button("plainbutton", "Cancel", close)));
    this.bubble.replaceWith(form);
    this.bar.remove();
    grow();
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }
}

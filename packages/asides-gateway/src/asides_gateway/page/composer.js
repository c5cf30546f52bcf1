// @ts-check
// Where one writes: a field that grows, the model and its effort, and one button that sends or stops.

import { Attachments, listFiles } from "./attachments.js";
import { button, make } from "./dom.js";
import { EffortPicker, ModelPicker } from "./pickers.js";

/**
 * @typedef {object} ComposerActs
 * @property {(text: string, files: import("./shapes.js").Attached[]) => void} onSend
 * @property {() => void} onStop
 * @property {() => void} onEditLast
 * @property {(text: string) => void} onDraft
 * @property {(model: string) => void} onModel
 * @property {(effort: string | null) => void} onEffort
 * @property {(problem: string) => void} onProblem
 */

export class Composer {
  /** @param {import("./shapes.js").Model[]} models @param {string[]} efforts those of any model @param {ComposerActs} acts */
  constructor(models, efforts, acts) {
    this.models = models;
    this.efforts = efforts;
    this.acts = acts;
    this.busy = false;
    this.field = /** @type {HTMLTextAreaElement} */ (make("textarea", {
      rows: 1, "aria-label": "Message", placeholder: "Ask something", dir: "auto", autocomplete: "off",
      oninput: () => { this.grow(); acts.onDraft(this.field.value); },
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onpaste: (/** @type {ClipboardEvent} */ event) => this.takeFiles(event, event.clipboardData),
    }));
    this.attachments = new Attachments(acts.onProblem);
    this.model = new ModelPicker(models, "", (model) => { this.drawEfforts(model, this.effort.value); acts.onModel(model); });
    this.effort = new EffortPicker(acts.onEffort);
    this.send = button("solid.send", "Send", () => (this.busy ? acts.onStop() : this.submit()));
    this.element = make("form.composer", { "aria-label": "Ask", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      make("div.box", { onclick: (/** @type {Event} */ event) => { if (event.target === event.currentTarget) this.field.focus(); },
        ondragover: (/** @type {DragEvent} */ event) => event.preventDefault(),
        ondrop: (/** @type {DragEvent} */ event) => this.takeFiles(event, event.dataTransfer) },
        this.field, this.attachments.list, this.attachments.input,
        make("div.controls", {}, this.model.element, this.effort.element, this.attachments.open, this.send)));
  }

  /** @param {string} model @param {string | null} effort */
  choose(model, effort) {
    this.model.set(model);
    this.drawEfforts(model, effort);
  }

  /** @param {string} model @param {string | null} effort */
  drawEfforts(model, effort) {
    const known = this.models.find((each) => each.id === model);
    this.effort.set(known ? known.efforts : this.efforts, effort);
  }

  /** @param {string} text */
  setText(text) {
    this.field.value = text;
    this.grow();
    this.acts.onDraft(text);
  }

  grow() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    this.busy = busy;
    this.send.textContent = busy ? "Stop" : "Send";
    this.send.classList.toggle("stops", busy);
  }

  submit() {
    const text = this.field.value;
    if ((!text.trim() && !this.attachments.files.length) || this.busy) return;
    this.setText("");
    this.acts.onSend(text, this.attachments.take());
  }

  /** @param {Event} event @param {DataTransfer | null} from */
  takeFiles(event, from) {
    const files = listFiles(from);
    if (!files.length) return;
    event.preventDefault();
    void this.attachments.add(files);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "ArrowUp" && this.field.value === "") {
      event.preventDefault();
      this.acts.onEditLast();
    }
  }
}

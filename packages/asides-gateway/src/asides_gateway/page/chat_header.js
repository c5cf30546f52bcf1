// @ts-check
// The line above a conversation: its title, what it has used, and what can be done with all of it.

import { button, freshId, make, show } from "./dom.js";
import { count, formatCost, formatShare } from "./figures.js";
import { keepChoice } from "./preferences.js";
import { wantsOpen } from "./thought.js";

/** @typedef {{onRename: (title: string) => void, onDelete: () => void, onMenu: () => void, onInstruct: () => void, onExport: (form: "md" | "json") => void, onKeep: (keeps: boolean) => void}} HeaderActs */

export class ChatHeader {
  /** @param {HTMLElement} talk where the thoughts are @param {HeaderActs} acts */
  constructor(talk, acts) {
    this.talk = talk;
    this.acts = acts;
    this.text = "";
    this.title = make("h1", { dir: "auto" }, "");
    this.rename = button("quiet", "Rename", () => this.openEditor());
    this.remove = button("quiet", "Delete", acts.onDelete);
    // Beside the title where there is room; on a phone they are behind a button.
    const id = freshId();
    this.instruct = button("quiet", "Instructions", acts.onInstruct, { title: "The system prompt of this conversation" });
    const exports = freshId();
    this.exports = make("div.menu-of", { id: exports, popover: "auto" },
      ...["Markdown", "JSON"].map((name) => button("quiet", name, () => {
        this.exports.hidePopover();
        acts.onExport(name === "JSON" ? "json" : "md");
      }, { "aria-label": `Export as ${name}` })));
    this.exporter = make("button.quiet.exporter", { type: "button", popovertarget: exports }, "Export");
    this.keep = button("quiet.switch", "Keep thinking", () => this.turnKeep(), { "aria-pressed": "false", title: "Keep the words of thinking in this browser, also when the page is loaded again" });
    this.menu = make("div.topacts", { id, popover: "auto" }, this.instruct, this.rename, this.exporter, this.exports, this.remove, this.keep);
    this.more = make("button.quiet.more", { type: "button", popovertarget: id }, "More");
    this.spend = make("p.spend.num");
    this.fold = button("quiet.switch", "Thinking", () => this.foldAll(), { "aria-pressed": String(wantsOpen()), title: "Fold or open all thinking" });
    this.turns = { turns: 0, tokens: 0, thinking: 0, cost: 0, priced: false };
    this.element = make("header.topbar", {},
      button("quiet.menu", "Menu", acts.onMenu, { "aria-label": "Menu: the conversations" }),
      this.title, this.menu, this.spend, this.fold, this.more);
    this.keepsAnyway = false;
    this.setTitle("");
    this.setKept(false);
  }

  /** @param {string} title */
  setTitle(title) {
    this.text = title;
    this.title.textContent = title || "New conversation";
  }

  /** Whether there is a conversation to rename and delete. @param {boolean} kept */
  setKept(kept) {
    for (const each of [this.rename, this.exporter, this.remove, this.fold]) show(each, kept);
    show(this.keep, kept && !this.keepsAnyway);
  }

  /** Fold or open every thought, now and from now on. */
  foldAll() {
    const open = !wantsOpen();
    keepChoice("thoughts", open ? "open" : "folded");
    this.fold.setAttribute("aria-pressed", String(open));
    for (const thought of this.talk.querySelectorAll("details.thought")) /** @type {HTMLDetailsElement} */ (thought).open = open;
  }

  /** Whether this browser keeps thinking, or the gateway does. @param {boolean} keeps @param {boolean} anyway */
  showKeep(keeps, anyway) {
    this.keepsAnyway = anyway;
    this.keep.setAttribute("aria-pressed", String(keeps));
  }

  turnKeep() {
    const keeps = this.keep.getAttribute("aria-pressed") !== "true";
    this.keep.setAttribute("aria-pressed", String(keeps));
    this.acts.onKeep(keeps);
  }

  /** @param {boolean} has whether there are instructions */
  setInstructed(has) {
    this.instruct.classList.toggle("has", has);
  }

  clear() {
    this.turns = { turns: 0, tokens: 0, thinking: 0, cost: 0, priced: false };
    this.spend.textContent = "";
  }

  /** Add what an answer used. @param {Pick<import("./shapes.js").Message, "usage" | "cost">} message */
  add({ usage, cost }) {
    const all = this.turns;
    all.turns += 1;
    all.tokens += usage?.output ?? 0;
    all.thinking += usage?.thinking ?? 0;
    if (typeof cost === "number") {
      all.cost += cost;
      all.priced = true;
    }
    const share = formatShare(all.thinking, all.tokens);
    this.spend.textContent = [
      all.tokens ? count(all.tokens, "token") + (all.thinking && share ? `, ${share} thinking` : "") : "",
      all.priced ? formatCost(all.cost) : "",
    ].filter(Boolean).join(" · ");
  }

  openEditor() {
    if (this.menu.matches(":popover-open")) this.menu.hidePopover();
    const field = /** @type {HTMLInputElement} */ (make("input.field", { value: this.text, "aria-label": "Title", dir: "auto", maxLength: 200 }));
    let open = true;
    const close = (/** @type {boolean} */ keep) => {
      if (!open) return;
      open = false;
      const title = field.value.trim();
      form.replaceWith(this.title);
      show(this.rename, true);
      if (keep && title && title !== this.text) {
        this.setTitle(title);
        this.acts.onRename(title);
      }
      this.rename.focus();
    };
    const form = make("form.retitle", { onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); close(true); } }, field);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close(false);
    });
    field.addEventListener("blur", () => close(true));
    this.title.replaceWith(form);
    show(this.rename, false);
    field.focus();
    field.select();
  }
}

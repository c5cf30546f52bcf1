// @ts-check
// Choose the model (type any provider:model, or pick one that is known) and how much it thinks.

import { freshId, make } from "./dom.js";

/** @typedef {import("./shapes.js").Model} Model */

const SHOWN = 80;

export class ModelPicker {
  /** @param {Model[]} models @param {string} value @param {(model: string) => void} onChange */
  constructor(models, value, onChange) {
    this.models = models;
    this.value = value;
    this.onChange = onChange;
    this.active = -1;
    this.listId = freshId();
    this.input = /** @type {HTMLInputElement} */ (make("input.model", {
      type: "text", role: "combobox", "aria-label": "Model", "aria-autocomplete": "list", "aria-expanded": "false",
      "aria-controls": this.listId, autocomplete: "off", autocapitalize: "off", spellcheck: false, placeholder: "provider:model", dir: "ltr", title: "Choose the model",
      oninput: () => this.open(), onfocus: () => { this.input.select(); }, onclick: () => this.open(true),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event), onblur: () => this.take(this.input.value),
    }));
    this.list = make("ul.options", { id: this.listId, role: "listbox", "aria-label": "Models", hidden: true,
      onmousedown: (/** @type {Event} */ event) => event.preventDefault() });
    this.element = make("div.picker", {}, this.input, make("span.chevron", { "aria-hidden": "true" }), this.list);
    this.set(value);
  }

  /** Show a model without telling anybody. @param {string} value */
  set(value) {
    this.value = value;
    this.input.value = value;
    this.fit();
  }

  fit() {
    this.input.size = Math.min(Math.max(this.input.value.length, 12), 34);
  }

  /** @param {boolean} [all] whatever is typed */
  open(all = false) {
    this.fit();
    const typed = all ? "" : this.input.value.trim().toLowerCase();
    const words = typed.split(/[\s:/]+/).filter(Boolean);
    const found = this.models.filter((model) => words.every((word) => model.id.toLowerCase().includes(word))).slice(0, SHOWN);
    this.active = -1;
    this.list.replaceChildren(...found.map((model, index) => make("li", {
      role: "option", id: `${this.listId}-${index}`, "aria-selected": String(model.id === this.value), "data-id": model.id,
      onclick: () => { this.take(model.id); this.close(); },
    }, make("span", {}, model.id), make("small", {}, model.thinks ? "thinks" : ""))));
    if (!found.length) this.list.append(make("li.none", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, "Any provider:model can be asked."));
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.input.removeAttribute("aria-activedescendant");
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} by */
  move(by) {
    if (this.list.hidden) this.open(true);
    const options = [...this.list.querySelectorAll("[data-id]")];
    if (!options.length) return;
    options[this.active]?.classList.remove("active");
    this.active = (this.active + by + options.length) % options.length;
    if (this.active < 0) this.active = 0;
    const option = options[this.active];
    option.classList.add("active");
    option.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", option.id);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") this.move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter") {
      const option = this.list.hidden ? null : /** @type {HTMLElement | undefined} */ (this.list.querySelectorAll("[data-id]")[this.active]);
      this.take(option?.dataset.id ?? this.input.value);
      this.close();
    } else if (event.key === "Escape") {
      this.set(this.value);
      this.close();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} text */
  take(text) {
    const model = text.trim();
    this.close();
    const changed = model !== "" && model !== this.value;
    this.set(model || this.value);
    if (changed) this.onChange(model);
  }
}

export class EffortPicker {
  /** @param {(effort: string | null) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.name = freshId();
    this.value = /** @type {string | null} */ (null);
    this.element = make("fieldset.efforts", {});
  }

  /** Show these efforts, and which is chosen; one that is not among them stays as it is. @param {string[]} efforts @param {string | null} value */
  set(efforts, value) {
    this.value = value;
    const all = ["", ...efforts, ...value && !efforts.includes(value) ? [value] : []];
    this.element.replaceChildren(make("legend.unseen", {}, "Thinking"));
    for (const effort of all) {
      const radio = /** @type {HTMLInputElement} */ (make("input.unseen", {
        type: "radio", name: this.name, value: effort, checked: effort === (value ?? ""),
        onchange: () => { this.value = effort || null; this.onChange(this.value); },
      }));
      this.element.append(make("label", {}, radio, make("span", {}, effort || "default")));
    }
    this.element.hidden = all.length < 2;
  }
}

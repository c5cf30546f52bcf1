// @ts-check
// Dialogs: a question that wants yes or no, and the list of keyboard shortcuts.

import { button, freshId, make } from "./dom.js";
import { keepChoice, readChoice } from "./preferences.js";

/**
 * Ask before something that cannot be undone.
 * @param {string} title @param {string} text @param {string} yes the verb of the button
 * @returns {Promise<boolean>}
 */
export function askToConfirm(title, text, yes) {
  return new Promise((resolve) => {
    const id = freshId();
    const dialog = /** @type {HTMLDialogElement} */ (make("dialog", { "aria-labelledby": id },
      make("h2", { id }, title), make("p", { dir: "auto" }, text),
      make("div.row", {},
        button("plainbutton", "Keep", () => dialog.close("")),
        button("solid.danger", yes, () => dialog.close("yes")))));
    open(dialog, () => resolve(dialog.returnValue === "yes"));
  });
}

/** @param {HTMLDialogElement} dialog @param {() => void} onClose */
function open(dialog, onClose) {
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
    onClose();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(""); });
  document.body.append(dialog);
  dialog.showModal();
}

/**
 * Ask for a text. @param {string} title @param {string} note @param {string} text @param {string} yes
 * @returns {Promise<string | null>} null: it stays as it is
 */
export function askForText(title, note, text, yes) {
  return new Promise((resolve) => {
    const id = freshId();
    const field = /** @type {HTMLTextAreaElement} */ (make("textarea.field", { value: text, rows: 8, dir: "auto", "aria-labelledby": id, maxLength: 100_000 }));
    const dialog = /** @type {HTMLDialogElement} */ (make("dialog.wide", { "aria-labelledby": id },
      make("h2", { id }, title), make("p", {}, note), field,
      make("div.row", {}, button("plainbutton", "Cancel", () => dialog.close("")), button("solid", yes, () => dialog.close("yes")))));
    open(dialog, () => resolve(dialog.returnValue === "yes" ? field.value : null));
  });
}

const SHORTCUTS = [
  [["Enter"], "send"],
  [["Shift", "Enter"], "a new line"],
  [["↑"], "in an empty field: edit your last question"],
  [["Esc"], "stop the model"],
  [["m"], "choose the model"],
  [["t"], "fold or open all thinking"],
  [["c"], "copy the last answer, without its thinking"],
  [["i"], "go to the field"],
  [["n"], "a new conversation"],
  [["s"], "search the conversations"],
  [["r"], "the requests of the gateway"],
  [["j", "k"], "among them: the next one, the one before"],
  [["?"], "this list"],
];

/** Show the keyboard shortcuts. */
export function showShortcuts() {
  const id = freshId();
  const list = make("dl.keys");
  for (const [keys, what] of SHORTCUTS) {
    list.append(make("dt", {}, .../** @type {string[]} */ (keys).map((key) => make("kbd", {}, key))), make("dd", {}, String(what)));
  }
  const box = /** @type {HTMLInputElement} */ (make("input", {
    type: "checkbox", checked: readChoice("keys") === "on", onchange: () => keepChoice("keys", box.checked ? "on" : "off"),
  }));
  const dialog = /** @type {HTMLDialogElement} */ (make("dialog", { "aria-labelledby": id },
    make("h2", { id }, "Keyboard shortcuts"), list, make("label.check", {}, box, "Shortcuts of one letter, outside of fields"),
    make("div.row", {}, button("plainbutton", "Close", () => dialog.close("")))));
  open(dialog, () => {});
}

// @ts-check
// The form that asks for the gateway's key. The key goes into sessionStorage, for this tab, and nowhere else.

import { keepKey } from "./api.js";
import { freshId, make } from "./dom.js";

/**
 * Show the form; settled once a key was given.
 * @param {HTMLElement} root
 * @param {string} problem what was wrong with the last key; "": nothing
 * @returns {Promise<void>}
 */
export function askForKey(root, problem) {
  return new Promise((resolve) => {
    const told = freshId();
    const field = /** @type {HTMLInputElement} */ (make("input.field.mono", {
      type: "password", autocomplete: "off", spellcheck: false, required: true, name: "gateway-key",
      "aria-describedby": told, "aria-invalid": problem ? "true" : undefined,
    }));
    const form = make("form.notecard", {
      onsubmit: (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const key = field.value.trim();
        if (!key) return;
        keepKey(key);
        field.value = "";
        root.replaceChildren();
        resolve();
      },
    },
      make("h1", {}, "This gateway requires a key"),
      make("p", { id: told, className: problem ? "problem" : "", role: problem ? "alert" : undefined },
        problem ? "That key was not accepted. Check it, and enter it again." :
          "Ask its operator for one. The key stays in this tab and is deleted when you close it."),
      make("label", {}, "Key", field),
      make("div.row", {}, make("button.solid", { type: "submit" }, "Open")),
    );
    document.title = "asides";
    root.replaceChildren(make("main.middle", { id: "view" }, form));
    field.focus();
  });
}

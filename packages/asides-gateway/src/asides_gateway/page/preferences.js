// @ts-check
// Choices of the reader that outlast a reload: how the page looks, and nothing that anybody said.

const START = "asides.";
/** @type {Record<string, readonly string[]>} */
const CHOICES = { theme: ["auto", "light", "dark"], thoughts: ["auto", "open", "folded"], keys: ["on", "off"], keep: ["off", "on"] };

/** @param {"theme" | "thoughts" | "keys" | "keep"} name @returns {string} */
export function readChoice(name) {
  try {
    const kept = localStorage.getItem(START + name) ?? "";
    if (CHOICES[name].includes(kept)) return kept;
  } catch {
    // Without storage everything is as at first.
  }
  return CHOICES[name][0];
}

/** @param {"theme" | "thoughts" | "keys" | "keep"} name @param {string} value */
export function keepChoice(name, value) {
  try {
    localStorage.setItem(START + name, value);
  } catch {
    // The choice then lasts until the page is left.
  }
}

/** Take the next theme, use it, and return it. */
export function turnTheme() {
  const all = CHOICES.theme;
  const theme = all[(all.indexOf(readChoice("theme")) + 1) % all.length];
  keepChoice("theme", theme);
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  return theme;
}

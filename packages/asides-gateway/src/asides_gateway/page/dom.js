// @ts-check
// Makes elements. Text is always a text node: nothing here, or elsewhere in the page, parses markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element: `make("button.quiet", {type: "button", onclick}, "Copy")`.
 * Properties that start with "on" are listeners; those that the element has are set; others are attributes.
 * @param {string} name a tag with classes
 * @param {Record<string, any>} [properties]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function make(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !key.includes("-")) /** @type {any} */ (element)[key] = value;
    else if (value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  put(element, ...children);
  return element;
}

/** A real button, which submits nothing. @param {string} name @param {string} label @param {(event: MouseEvent) => void} onclick @param {Record<string, any>} [more] */
export function button(name, label, onclick, more = {}) {
  return /** @type {HTMLButtonElement} */ (make(`button.${name}`, { type: "button", onclick, ...more }, label));
}

/** Append children, leaving out what is empty. @param {Node} parent @param {...Child} children */
export function put(parent, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** @param {Element} element @param {boolean} is */
export function show(element, is) {
  /** @type {HTMLElement} */ (element).hidden = !is;
}

const overflow = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const box = /** @type {HTMLElement} */ (entry.target);
    const scrolls = box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
});

/** Let the keyboard scroll a box whenever it has more than it shows. @param {HTMLElement} box */
export function reachable(box) {
  overflow.observe(box);
  return box;
}

let lastId = 0;
/** An id for a label or a description. */
export function freshId() {
  lastId += 1;
  return `a${lastId}`;
}

/**
 * Copy text, also where the browser keeps its clipboard for secure origins.
 * @param {string} text
 * @returns {Promise<boolean>}
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const area = /** @type {HTMLTextAreaElement} */ (make("textarea.unseen", { value: text, readOnly: true }));
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}

/** A button that copies, and says so for a moment. @param {string} name @param {string} label @param {() => string} text @param {Record<string, any>} [more] */
export function copyButton(name, label, text, more = {}) {
  const made = button(name, label, async () => {
    made.textContent = (await copyText(text())) ? "Copied" : "Not copied";
    setTimeout(() => { made.textContent = label; }, 1400);
  }, more);
  return made;
}

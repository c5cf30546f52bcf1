// @ts-check
// A call of a tool, as a card in the answer: its name and arguments, and its result, folded past eight lines.

import { button, make, put, reachable } from "./dom.js";
import { count } from "./figures.js";

const LINES = 8;
const SHORT = 72;

/** @param {{id: string, name: string, arguments: unknown}} call */
export function makeCall(call) {
  const given = readArguments(call.arguments);
  const short = given && typeof given === "object" && !Array.isArray(given) ? writeShort(/** @type {Record<string, unknown>} */ (given)) : "";
  const state = make("span.state", {}, "called");
  const card = make("div.call", { role: "group", "aria-label": `Call of ${call.name}` },
    make("div.head", {}, make("span.mono.name", { dir: "ltr" }, call.name, short && make("span.given", {}, `(${short})`)), state));
  const long = typeof given === "string" ? given : JSON.stringify(given, null, 2) ?? "";
  if (!short && long && long !== "{}") card.append(fold(long, "arguments"));
  return card;
}

/** @param {unknown} given */
function readArguments(given) {
  if (typeof given !== "string") return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

/** Arguments on one line, `city: "Oslo"`; "": they do not fit. @param {Record<string, unknown>} given */
function writeShort(given) {
  const line = Object.entries(given).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ");
  return line.length <= SHORT ? line : "";
}

/** @param {HTMLElement} card @param {import("./shapes.js").ResultBlock} result */
export function putResult(card, result) {
  const state = card.querySelector(".state");
  if (state) {
    state.textContent = result.is_error ? "failed" : "done";
    state.classList.add(result.is_error ? "bad" : "good");
  }
  put(card, result.text ? fold(result.text, "lines") : null);
}

/** Text in its own type; only the first eight lines are shown until expanded. @param {string} text @param {string} what */
function fold(text, what) {
  const lines = text.split("\n");
  const pre = reachable(make("pre", { dir: "auto" }));
  const box = make("div.result", {}, pre);
  if (lines.length <= LINES + 1) {
    pre.textContent = text;
    return box;
  }
  let open = false;
  const draw = () => {
    pre.textContent = open ? text : lines.slice(0, LINES).join("\n");
    more.textContent = open ? "Fold" : what === "lines" ? `${count(lines.length - LINES, "more line")}` : "All of it";
    more.setAttribute("aria-expanded", String(open));
  };
  const more = button("quiet", "", () => { open = !open; draw(); });
  box.append(more);
  draw();
  return box;
}

/** A file, or a part that the page does not know: named, never loaded. @param {import("./shapes.js").FileBlock | import("./shapes.js").UnknownBlock} block */
export function makeFile(block) {
  if (block.type === "file" && block.data) {
    return make("img.picture", { src: `data:${block.media_type};base64,${block.data}`, alt: block.name || "Picture", loading: "lazy" });
  }
  const words = block.type === "file" ? [block.name, block.media_type, block.bytes ? count(block.bytes, "byte") : ""] : ["a part that this page does not show"];
  return make("p.file", { dir: "auto" }, words.filter(Boolean).join(" · "));
}

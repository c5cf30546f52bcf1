// @ts-check
// The list of requests: a table that changes in place, drawn as far as it is seen.

import { make, put } from "./dom.js";
import { count, formatExactly, whole } from "./figures.js";
import { Bar } from "./request_bar.js";
import { isOpen, listMarks, nameCaller, nameDialect, nameTarget, PAGE, shortModel, STATES } from "./request_words.js";

/** @typedef {import("./request_words.js").Summary} Summary */

/** Rows that are drawn at first, and more of them each time the end comes near. */
const STEP = 100;
const COLUMNS = ["time", "client → provider", "first thought · answer", "time taken", "tokens", "what happened"];
const SCALE = 3;
/** Where the time axis of the bars may end, in seconds. */
const AXES = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600];
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export class RequestList {
  /** @param {{onOpen: (id: string) => void, readNow: (request: Summary) => number}} acts */
  constructor(acts) {
    this.acts = acts;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** What is shown, the newest first. @type {Summary[]} */
    this.requests = [];
    this.drawn = STEP;
    this.chosen = "";
    this.axis = 0;
    this.axisEnd = make("span.num");
    this.body = make("tbody", { role: "rowgroup" });
    this.end = make("div.list-end");
    // Roles by hand: on a phone the rows are no longer laid out as a table, and browsers would forget what they are.
    this.table = make("table.requests", { role: "table" },
      make("caption.unseen", {}, "Requests to this gateway, the newest first"),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" },
        ...COLUMNS.map((name, place) => make("th", { role: "columnheader", scope: "col" }, name, place === SCALE ? this.axisEnd : null)))),
      this.body);
    this.element = make("div.request-list", {}, this.table, this.end);
    this.seen = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) this.drawMore();
    }, { rootMargin: "600px" });
    this.seen.observe(this.end);
  }

  close() {
    this.seen.disconnect();
  }

  /** Show these requests. Rows that stay are kept, and changed only where they differ. @param {Summary[]} requests */
  show(requests) {
    this.requests = requests;
    const wanted = requests.slice(0, this.drawn);
    const ids = new Set(wanted.map((request) => request.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      row.element.remove();
      this.rows.delete(id);
    }
    this.fitAxis(wanted);
    /** @type {Element | null} */
    let next = this.body.firstElementChild;
    for (const request of wanted) {
      let row = this.rows.get(request.id);
      if (!row) {
        row = new Row(request, this.acts.onOpen);
        this.rows.set(request.id, row);
      }
      row.draw(request, this.acts.readNow(request), this.axis);
      row.choose(request.id === this.chosen);
      if (row.element === next) next = next.nextElementSibling;
      else this.body.insertBefore(row.element, next);
    }
  }

  drawMore() {
    if (this.drawn >= this.requests.length) return;
    this.drawn += STEP;
    this.show(this.requests);
    // The end may still be in sight, and an observer reports only changes.
    this.seen.unobserve(this.end);
    this.seen.observe(this.end);
  }

  /** Let the bars of open requests grow. */
  tick() {
    const open = [...this.rows.values()].filter((row) => isOpen(row.request));
    if (open.some((row) => this.acts.readNow(row.request) > this.axis)) this.fitAxis([...this.rows.values()].map((row) => row.request));
    for (const row of open) row.tick(this.acts.readNow(row.request), this.axis);
  }

  /** All bars have one axis of time, as long as the longest request. @param {Summary[]} requests */
  fitAxis(requests) {
    const longest = requests.reduce((most, request) => Math.max(most, this.acts.readNow(request)), 0);
    const axis = AXES.find((end) => end >= longest) ?? longest;
    if (axis === this.axis) return;
    this.axis = axis;
    this.axisEnd.textContent = ` · 0 to ${formatExactly(axis)}`;
    for (const row of this.rows.values()) row.tick(this.acts.readNow(row.request), axis);
  }

  /** @param {string} id "": none */
  choose(id) {
    this.rows.get(this.chosen)?.choose(false);
    this.chosen = id;
    this.rows.get(id)?.choose(true);
  }

  /** The request that is so many lines from the chosen or focused one. @param {number} step */
  find(step) {
    const focused = document.activeElement?.closest("tr")?.dataset.id;
    const from = this.requests.findIndex(({ id }) => id === (focused ?? this.chosen));
    const place = from < 0 ? 0 : Math.min(Math.max(from + step, 0), this.requests.length - 1);
    return this.requests[place]?.id ?? "";
  }

  /** @param {string} id */
  focus(id) {
    const place = this.requests.findIndex((request) => request.id === id);
    if (place >= this.drawn) {
      this.drawn = place + STEP;
      this.show(this.requests);
    }
    const row = this.rows.get(id);
    row?.link.focus({ preventScroll: true });
    row?.element.scrollIntoView({ block: "nearest" });
  }
}

class Row {
  /** @param {Summary} request @param {(id: string) => void} onOpen */
  constructor(request, onOpen) {
    this.request = request;
    this.told = "";
    this.link = /** @type {HTMLAnchorElement} */ (make("a.num", { href: `#/requests/${encodeURIComponent(request.id)}` }));
    this.bar = new Bar();
    this.who = cell("who");
    this.first = cell("first.num");
    this.tokens = cell("tokens.num");
    this.marks = cell("marks");
    const scale = cell("scale", this.bar.element);
    this.state = make("span.state");
    put(scale, this.state);
    this.element = make("tr", { role: "row" }, cell("time", this.link), this.who, this.first, scale, this.tokens, this.marks);
    this.element.dataset.id = request.id;
    this.element.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      onOpen(this.request.id);
    });
    const at = new Date(request.at * 1000);
    this.link.textContent = clock.format(at);
    this.link.title = at.toLocaleString();
  }

  /** @param {Summary} request @param {number} now @param {number} axis the seconds of the whole width */
  draw(request, now, axis) {
    const told = JSON.stringify(request);
    if (told === this.told) return;
    this.told = told;
    this.request = request;
    this.link.setAttribute("aria-label", `${this.link.textContent}, ${nameCaller(request)}, ${shortModel(request.model || request.model_asked) || request.path}`);
    this.who.replaceChildren(
      make("span.client", { title: request.client }, nameCaller(request)), " ", request.dialect === PAGE ? "" : chip(nameDialect(request.dialect)),
      make("span.arrow", { "aria-label": "to" }, " → "), nameTarget(request),
      request.target_dialect ? " " : "", request.target_dialect ? chip(nameDialect(request.target_dialect)) : "",
      make("small", { dir: "auto" }, request.mode === "own" && !request.model ? `${request.method} ${request.path}` : shortModel(request.model || request.model_asked)));
    const { first_thought: thought, first_answer: answer } = request.timing;
    this.first.textContent = request.model || thought !== null ? `${thought === null ? "–" : formatExactly(thought)} · ${answer === null ? "–" : formatExactly(answer)}` : "";
    const { input, output } = request.usage;
    const known = (input ?? 0) + (output ?? 0);
    this.tokens.textContent = known ? whole.format(known) : "";
    this.tokens.title = known ? `${count(input ?? 0, "token")} in, ${count(output ?? 0, "token")} out` : "";
    this.marks.replaceChildren(...listMarks(request).slice(0, 3).flatMap(({ text, tone }) => [chip(text, tone), " "]));
    this.element.dataset.state = request.state;
    this.tick(now, axis);
  }

  /** @param {number} now @param {number} axis */
  tick(now, axis) {
    this.bar.draw(this.request, now, axis);
    this.state.textContent = isOpen(this.request) ? STATES[this.request.state] : "";
  }

  /** @param {boolean} is */
  choose(is) {
    this.element.classList.toggle("chosen", is);
    if (is) this.link.setAttribute("aria-current", "true");
    else this.link.removeAttribute("aria-current");
  }
}

/** @param {string} name @param {...Node} children */
function cell(name, ...children) {
  return make(`td.${name}`, { role: "cell" }, ...children);
}

/** A word in a frame. @param {string} text @param {string} [tone] */
export function chip(text, tone = "") {
  return make(tone ? `span.chip.${tone}` : "span.chip", {}, text);
}

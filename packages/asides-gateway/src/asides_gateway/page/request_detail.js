// @ts-check
// One request: its time to scale, what came in, what went back and why, what went out, and what it used.

import { button, copyButton, freshId, make, reachable } from "./dom.js";
import { count, formatCost, formatExactly, formatShare, whole } from "./figures.js";
import { addStretches, Bar, swatch } from "./request_bar.js";
import { chip } from "./request_list.js";
import { isOpen, nameAction, nameCaller, nameDialect, nameEvent, nameSource, nameTarget, nameThing, PAGE, shortModel, STATES } from "./request_words.js";

/** @typedef {import("./request_words.js").Detail} Detail */
/** @typedef {import("./request_words.js").Decision} Decision */
/** @typedef {import("./dom.js").Child} Child */

/** The last messages whose decisions are shown initially. */
const SHOWN_MESSAGES = 12;

export class RequestDetail {
  /** @param {{onClose: () => void, readNow: (request: Detail) => number}} acts */
  constructor(acts) {
    this.acts = acts;
    /** @type {Detail | null} */
    this.detail = null;
    this.showsAll = false;
    this.bar = new Bar(true);
    this.times = make("dl.times.num");
    this.title = make("h2", { tabIndex: -1, dir: "auto" });
    this.line = make("p.line");
    this.copy = copyButton("plainbutton", "Copy as curl", () => this.detail?.curl ?? "", { title: "A command that repeats this request; the key is $ASIDES_GATEWAY_KEY" });
    /** Sections by their headings: each is drawn again only if what it shows has changed. @type {Map<string, {element: HTMLElement, body: HTMLElement, told: string}>} */
    this.sections = new Map();
    this.rest = make("div.sections");
    this.problem = make("p.problem", { role: "alert", hidden: true });
    this.content = make("div.content", { hidden: true },
      make("div.scaled", {}, this.bar.element, this.times), this.rest);
    this.element = make("section.request-detail", { "aria-label": "The chosen request" },
      make("header", {},
        button("quiet.back", "Back to the list", acts.onClose), this.title, this.line, make("div.acts", {}, this.copy)),
      this.problem, this.content);
  }

  /** Before anything is known of another request. */
  clear() {
    this.detail = null;
    this.showsAll = false;
    this.title.textContent = "";
    this.line.textContent = "";
    this.content.hidden = true;
    this.problem.hidden = true;
    this.copy.hidden = true;
    this.sections.clear();
    this.rest.replaceChildren();
  }

  /** @param {string} message */
  fail(message) {
    this.title.textContent = "Not here";
    this.problem.textContent = message;
    this.problem.hidden = false;
    this.content.hidden = true;
    this.copy.hidden = true;
  }

  /** @param {Detail} detail */
  show(detail) {
    this.detail = detail;
    this.problem.hidden = true;
    this.content.hidden = false;
    this.copy.hidden = detail.curl === "";
    const model = shortModel(detail.model || detail.model_asked);
    this.title.textContent = model || `${detail.method} ${detail.path}`;
    this.line.replaceChildren(
      `${nameCaller(detail)} `, detail.dialect === PAGE ? "" : chip(nameDialect(detail.dialect)), " → ", nameTarget(detail),
      detail.target_dialect ? " " : "", detail.target_dialect ? chip(nameDialect(detail.target_dialect)) : "",
      " ", chip(detail.state === "failed" && detail.status ? `failed, ${detail.status}` : STATES[detail.state], detail.state === "failed" ? "bad" : ""));
    this.tick();
    this.draw("What went wrong", detail.error ?? null, () => this.drawError(detail));
    this.draw("What came in", [detail.asked, detail.method, detail.path, detail.client, detail.model_asked], () => this.drawAsked(detail));
    this.draw("What went back, and why", [detail.decisions, detail.mode, this.showsAll], () => this.drawDecisions(detail));
    this.draw("What went out", [detail.sent, detail.model, detail.reason, detail.mode], () => this.drawSent(detail));
    this.draw("Figures", [detail.usage, detail.cost, detail.events, detail.restored, detail.missed, detail.attempts, detail.repairs, detail.sent_bytes], () => this.drawFigures(detail));
    this.draw("Notices", detail.notices.length ? detail.notices : null, () => this.drawNotices(detail));
    this.draw("Bodies", [detail.has_bodies, detail.request_body, detail.sent_bodies], () => this.drawBodies(detail));
  }

  /** Let the times of an open request grow. */
  tick() {
    const { detail } = this;
    if (!detail) return;
    const now = this.acts.readNow(detail);
    this.bar.draw(/** @type {any} */ (detail), now);
    const sums = addStretches(detail, now);
    const figures = Object.entries(sums).map(([state, seconds]) => [state, seconds > 0 ? formatExactly(seconds) : "–"]);
    const told = figures.join() + detail.state;
    if (this.times.dataset.told === told) return;
    this.times.dataset.told = told;
    this.times.replaceChildren(...figures.flatMap(([state, text]) => [make("dt", {}, swatch(state), state), make("dd", {}, text)]),
      make("dt", {}, isOpen(detail) ? "so far" : "in all"), make("dd", {}, formatExactly(now)));
  }

  /** @param {string} heading @param {unknown} data null: the section is left out @param {() => Child[]} draw */
  draw(heading, data, draw) {
    let section = this.sections.get(heading);
    if (!section) {
      const id = freshId();
      const body = make("div");
      section = { element: make("section.card", { "aria-labelledby": id }, make("h3", { id }, heading), body), body, told: "" };
      this.sections.set(heading, section);
      this.rest.append(section.element);
    }
    section.element.hidden = data === null;
    const told = JSON.stringify(data) ?? "";
    if (told === section.told) return;
    section.told = told;
    const children = data === null ? [] : draw();
    section.body.replaceChildren(...children.filter((child) => child instanceof Node || typeof child === "string").map((child) => /** @type {Node | string} */ (child)));
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawError({ error }) {
    return error ? [make("p.problem", { dir: "auto" }, error.message), make("p", {}, make("code", {}, error.code))] : [];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawAsked({ asked, method, path, client, model_asked: model }) {
    const headers = Object.entries(asked.headers);
    return [
      facts([
        ["asked for", model ? make("code", {}, model) : null],
        ["at", make("code", {}, `${method} ${path}`)],
        ["by", client ? make("code", {}, client) : "a client without a name"],
        ["history", asked.messages === undefined ? null : `${count(asked.messages, "message")}${asked.has_system ? " and a system prompt" : ""}`],
        ["tools", asked.tools ? count(asked.tools, "tool") : null],
        ["thinking", asked.thinking || null],
        ["at most", asked.max_tokens ? count(asked.max_tokens, "token") : null],
        ["reply", asked.stream === undefined ? null : asked.stream ? "as a stream" : "whole"],
        ["size", formatBytes(asked.bytes)],
      ]),
      headers.length ? listHeaders(headers) : null,
    ];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawDecisions({ decisions, mode, sent }) {
    if (!decisions.length) return [make("p.quietly", {}, explainNothing(mode, sent.length > 0))];
    /** @type {Map<number, Decision[]>} */
    const groups = new Map();
    for (const decision of decisions) {
      const group = groups.get(decision.message);
      if (group) group.push(decision);
      else groups.set(decision.message, [decision]);
    }
    const ordered = [...groups].sort(([one], [other]) => one - other);
    const hidden = this.showsAll ? 0 : Math.max(0, ordered.length - SHOWN_MESSAGES);
    return [
      make("p.sums", {}, ...addActions(decisions)),
      mode === "forward" ? make("p.quietly", {}, "The body was sent unchanged: these turns were checked, and nothing had to be changed.") : null,
      hidden ? button("quiet", `Show ${count(hidden, "earlier message")}`, () => { this.showsAll = true; if (this.detail) this.show(this.detail); }) : null,
      make("ol.plan", {}, ...ordered.slice(hidden).map(([message, group]) =>
        make("li", {}, make("h4", {}, `Message ${message + 1}`), make("ul", {}, ...group.map(drawDecision))))),
    ];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawSent({ sent, mode, reason, model, dialect }) {
    const own = dialect === PAGE ? "Asked for this page" : "Answered by the gateway itself";
    const why = { forward: "Forwarded", translate: "Translated", own }[mode];
    return [
      make("p", {}, make("b", {}, why), reason ? `: ${reason}.` : "."),
      model ? facts([["to", make("code", {}, model)]]) : null,
      sent.length ? make("ol.attempts", {}, ...sent.map((each, place) => make("li", {},
        make("p", {}, make("code", {}, `${each.method} ${each.url}`), " ",
          each.repaired ? chip("repaired", "bad") : place && sent[place - 1].model === each.model ? chip("again") : place ? chip("next model", "accent") : ""),
        make("p.num.quietly", {}, `${formatBytes(each.bytes)}, after ${formatExactly(each.after)}`),
        listHeaders(Object.entries(each.headers))))) : make("p.quietly", {}, "Nothing was sent to a provider."),
    ];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawFigures(detail) {
    const { usage, cost, cost_origin: origin, events, timing } = detail;
    const share = usage.thinking && usage.output ? ` (${formatShare(usage.thinking, usage.output)} thinking)` : "";
    return [
      facts([
        ["first event", timing.first_event === null ? null : formatExactly(timing.first_event)],
        ["first thought", timing.first_thought === null ? null : formatExactly(timing.first_thought)],
        ["first answer", timing.first_answer === null ? null : formatExactly(timing.first_answer)],
        ["tokens in", figure(usage.input)],
        ["from a cache", usage.cached ? figure(usage.cached) : null],
        ["tokens out", usage.output === null || usage.output === undefined ? null : `${whole.format(usage.output)}${share}`],
        ["thinking", figure(usage.thinking)],
        ["cost", cost === null ? null : `${formatCost(cost)}${origin === "estimated" ? ", estimated" : ""}`],
        ["state", detail.restored || detail.missed ? `${count(detail.restored, "turn")} restored, ${detail.missed} not found` : null],
        ["attempts", detail.attempts ? `${detail.attempts}${detail.repairs ? `, ${count(detail.repairs, "repair")}` : ""}` : null],
        ["sent back", detail.sent_bytes ? formatBytes(detail.sent_bytes) : null],
      ], "num"),
      Object.keys(events).length ? make("p.events.num", { "aria-label": "Events by kind" }, ...Object.entries(events).flatMap(([kind, number]) => [chip(`${nameEvent(kind)} ${whole.format(number)}`), " "])) : null,
    ];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawNotices({ notices }) {
    return [make("ul.notices", {}, ...notices.map(({ code, detail }) => make("li", {}, make("code", {}, code), " ", make("span", { dir: "auto" }, detail))))];
  }

  /** @param {Detail} detail @returns {Child[]} */
  drawBodies({ has_bodies: has, request_body: request, sent_bodies: sent }) {
    if (!has) return [make("p.quietly", {}, "Not kept for this request. Switch “Keep bodies” on, and those of the next requests are.")];
    return [
      make("p.quietly", {}, "Keys, seals and thinking that may not be shown are ***."),
      drawBody("As it came in", request),
      ...(sent ?? []).map((body, place) => drawBody((sent ?? []).length > 1 ? `As it went out, attempt ${place + 1}` : "As it went out", body)),
    ];
  }
}

/** @param {Decision} decision */
function drawDecision(decision) {
  const { text, tone } = nameAction(decision.action);
  const { since, source, link } = nameSource(decision);
  const named = link ? make("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, source) : source;
  return make("li", {}, chip(text, tone), make("div", {}, make("span", {}, nameThing(decision)),
    make("small", {}, decision.why, since || source ? " · " : "", since, since && source ? ", " : "", named)));
}

/** @param {Decision[]} decisions */
function addActions(decisions) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { action } of decisions) sums.set(action, (sums.get(action) ?? 0) + 1);
  return [...sums].flatMap(([action, number]) => {
    const { text, tone } = nameAction(action);
    return [chip(`${number} ${text}`, tone), " "];
  });
}

/** @param {string} mode @param {boolean} wasSent */
function explainNothing(mode, wasSent) {
  if (mode === "forward") return "The body was sent unchanged; nothing had to be restored or dropped.";
  return wasSent ? "There were no earlier turns with thinking, so there was nothing to decide." : "Nothing was decided: no request was sent.";
}

/** @param {[string, Child][]} rows @param {string} [more] */
function facts(rows, more = "") {
  const known = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make(more ? `dl.facts.${more}` : "dl.facts", {}, ...known.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** @param {[string, string][]} headers */
function listHeaders(headers) {
  return make("details.headers", {}, make("summary", {}, count(headers.length, "header")),
    reachable(make("pre", {}, headers.map(([name, value]) => `${name}: ${value}`).join("\n"))));
}

/** @param {string} name @param {unknown} body */
function drawBody(name, body) {
  if (typeof body === "string" || body === null || body === undefined) {
    return make("p", {}, make("b", {}, name), ` ${typeof body === "string" ? body : "(empty)"}`);
  }
  const text = make("pre.body", { tabIndex: 0, role: "group", "aria-label": name });
  const details = make("details.headers", {}, make("summary", {}, name), text);
  // Written when it is looked at: it may be a megabyte.
  details.addEventListener("toggle", () => {
    if (!text.firstChild) text.textContent = JSON.stringify(body, null, 2);
  });
  return make("div.body-of", {}, details, copyButton("quiet", "Copy", () => JSON.stringify(body, null, 2)));
}

/** @param {number | null | undefined} value */
function figure(value) {
  return value === null || value === undefined ? null : whole.format(value);
}

/** @param {number} bytes */
function formatBytes(bytes) {
  if (bytes < 1024) return count(bytes, "byte");
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}


// @ts-check
// The inspector: the requests of this gateway as they happen, and one of them in full.
// It keeps what the gateway reports, up to a bound, and reconnects by itself after an outage.

import { button, make, show } from "./dom.js";
import { readChoice } from "./preferences.js";
import { makeLegend } from "./request_bar.js";
import { RequestDetail } from "./request_detail.js";
import { RequestList } from "./request_list.js";
import { describeState, isOpen } from "./request_words.js";

/** @typedef {import("./request_words.js").Summary} Summary */
/** @typedef {import("./request_words.js").Detail} Detail */
/** @typedef {typeof import("./api.js")} Api */
/** @typedef {import("./app.js").Shell} Shell */

const MOST = 1000;
const TICK = 200;
const DETAIL_WAIT = 300;
const REFUSED_WAIT = 5000;
/** How often requests of other processes are looked for, and how many of them. */
const OTHERS_WAIT = 5000;
const OTHERS = 100;
const WHAT_BODIES_ARE = "Bodies hold what people asked and what was sent. They stay in the memory of this process until you switch this off; keys and seals are blacked out.";

/** @type {[string, string, (request: Summary) => boolean][]} */
const FILTERS = [
  ["all", "all", () => true],
  ["live", "live", isOpen],
  ["errors", "errors", ({ state }) => state === "failed"],
  ["healed", "healed", ({ repairs, restored }) => repairs > 0 || restored > 0],
];

/**
 * Show the inspector.
 * @param {HTMLElement} root @param {Api} api @param {Shell} [shell] @param {string} [id] the request to open
 * @returns {() => void} what ends it
 */
export function mountInspector(root, api, shell, id = "") {
  const inspector = new Inspector(api, shell);
  root.append(inspector.element);
  inspector.begin(id);
  return () => {
    inspector.end();
    inspector.element.remove();
  };
}

/** What to say where several processes answer. @param {boolean} shares @param {number} workers */
function describeSharing(shares, workers) {
  if (shares) return "The list has the requests of all processes of this gateway. Those of other processes come a few seconds after they have ended, and their details and bodies stay with the process that answered them.";
  return workers > 1 ? `This gateway has ${workers} processes. Each keeps its own requests, and one of them answers this page.` : "";
}

class Inspector {
  /** @param {Api} api @param {Shell} [shell] */
  constructor(api, shell) {
    this.api = api;
    this.shell = shell;
    this.stopper = new AbortController();
    /** @type {Map<string, Summary>} */
    this.requests = new Map();
    /** When each was reported, by the clock of this page: an open request grows from there. @type {Map<string, number>} */
    this.toldAt = new Map();
    this.filter = "all";
    this.chosen = "";
    this.isCapturing = false;
    this.frame = 0;
    this.timer = 0;
    this.othersTimer = 0;
    this.sharesRequests = false;
    this.detailTimer = 0;
    this.detailRun = 0;
    this.isGone = false;
    /** @type {() => void} */
    this.stopListening = () => {};
    this.onKey = this.onKey.bind(this);

    this.list = new RequestList({ onOpen: (id) => this.open(id), readNow: (request) => this.readNow(request) });
    this.detail = new RequestDetail({ onClose: () => this.leave(), readNow: (request) => this.readNow(request) });
    this.filters = FILTERS.map(([name, label]) =>
      button("segment", label, () => this.use(name), { "aria-pressed": String(name === this.filter) }));
    this.capture = button("quiet.switch", "Keep bodies", () => void this.turnCapture(), { "aria-pressed": "false", title: WHAT_BODIES_ARE });
    this.captureNote = make("p.strip", { hidden: true }, WHAT_BODIES_ARE);
    this.note = make("p.strip", { hidden: true });
    this.problem = make("p.strip.problem", { role: "alert", hidden: true });
    this.empty = make("div.nothing", { hidden: true });
    this.live = make("div.unseen", { "aria-live": "polite" });
    this.scroller = make("div.scroll", {}, this.empty, this.list.element);
    this.element = make("div.inspector", {},
      make("header.topbar", {},
        button("quiet.menu", "Menu", () => this.shell?.toggleDrawer(), { "aria-label": "Menu: the conversations" }),
        make("h1", {}, "Requests"),
        make("div.segments", { role: "group", "aria-label": "Which requests" }, ...this.filters),
        makeLegend(), this.capture),
      this.captureNote, this.note, this.problem,
      make("div.panes", {}, this.scroller, this.detail.element), this.live);
    this.detail.clear();
  }

  /** @param {string} id "": none is chosen */
  begin(id) {
    document.addEventListener("keydown", this.onKey);
    this.timer = window.setInterval(() => this.tick(), TICK);
    this.othersTimer = window.setInterval(() => void this.readOthers(), OTHERS_WAIT);
    this.open(id, { keepsAddress: true });
    void this.follow();
  }

  end() {
    document.removeEventListener("keydown", this.onKey);
    window.clearInterval(this.timer);
    window.clearInterval(this.othersTimer);
    window.clearTimeout(this.detailTimer);
    cancelAnimationFrame(this.frame);
    this.stopListening();
    this.stopper.abort();
    this.list.close();
  }

  // --- what the gateway reports ---------------------------------------------------------------------------------------

  /** Read the list, then its changes, for as long as the view is shown. */
  async follow() {
    const { signal } = this.stopper;
    while (!signal.aborted) {
      try {
        const told = await this.api.get(`/requests?limit=${MOST}`, signal);
        this.takeList(told);
        await this.api.events(`/requests/events?after=${encodeURIComponent(told.position)}`, {}, (name, data) => this.take(name, data), signal);
        // The stream has ended, as it does when the gateway does.
        this.setGone(true);
        await wait(500, signal);
      } catch (problem) {
        if (signal.aborted) return;
        if (!(await this.recover(problem))) return;
      }
    }
  }

  /** What to do about a problem; whether to go on. @param {unknown} problem */
  async recover(problem) {
    const { signal } = this.stopper;
    const kind = problem instanceof this.api.ApiError ? problem.kind : "";
    this.setGone(true);
    if (kind === "key") {
      this.shell?.connection.takes(problem);
      return false;
    }
    if (kind === "gone") {
      if (!this.shell) await wait(1000, signal);
      else {
        const back = new Promise((resolve) => {
          this.stopListening = /** @type {Shell} */ (this.shell).connection.onBack(() => resolve(undefined));
          signal.addEventListener("abort", () => resolve(undefined), { once: true });
        });
        this.shell.connection.takes(problem);
        await back;
        this.stopListening();
      }
      return true;
    }
    this.say(problem instanceof Error ? problem.message : "Something went wrong.");
    await wait(REFUSED_WAIT, signal);
    return true;
  }

  /** @param {boolean} is */
  setGone(is) {
    this.isGone = is;
    this.element.toggleAttribute("data-gone", is);
  }

  /** @param {string} problem "": none */
  say(problem) {
    this.problem.textContent = problem;
    show(this.problem, problem !== "");
  }

  /** @param {{requests: Summary[], captures_bodies: boolean, workers: number, shares_requests?: boolean}} told */
  takeList(told) {
    this.setGone(false);
    this.say("");
    this.requests.clear();
    this.toldAt.clear();
    for (const request of told.requests) this.keep(request);
    this.showCapture(told.captures_bodies);
    this.sharesRequests = told.shares_requests === true;
    this.note.textContent = describeSharing(this.sharesRequests, told.workers);
    show(this.note, this.note.textContent !== "");
    this.draw();
    if (this.chosen) this.readDetail(0);
  }

  /** Add what other processes have answered meanwhile: this one hears of it only from their database. */
  async readOthers() {
    if (!this.sharesRequests || document.hidden || this.isGone) return;
    try {
      const told = await this.api.get(`/requests?limit=${OTHERS}`, this.stopper.signal);
      for (const request of told.requests) if (request.instance && !this.requests.has(request.id)) this.keep(request);
      this.draw();
    } catch {
      // The change feed reports the problem.
    }
  }

  /** @param {string} name @param {any} data */
  take(name, data) {
    if (name === "settings") this.showCapture(data.captures_bodies);
    if (name === "reset") void this.api.get(`/requests?limit=${MOST}`, this.stopper.signal).then((told) => this.takeList(told), () => {});
    if (name !== "request") return;
    const before = this.requests.get(data.id);
    this.keep(data);
    if (data.id === this.chosen) {
      if (before && before.state !== data.state) this.live.textContent = describeState(data);
      this.readDetail(isOpen(data) ? DETAIL_WAIT : 0);
    }
    this.draw();
  }

  /** @param {Summary} request */
  keep(request) {
    this.requests.set(request.id, request);
    this.toldAt.set(request.id, performance.now());
    if (this.requests.size <= MOST) return;
    const oldest = [...this.requests.values()].reduce((one, other) => (other.at < one.at ? other : one));
    this.requests.delete(oldest.id);
    this.toldAt.delete(oldest.id);
  }

  /** The seconds of a request so far. @param {Summary | Detail} request */
  readNow(request) {
    if (!isOpen(request) || this.isGone) return request.timing.total ?? request.elapsed;
    return request.elapsed + (performance.now() - (this.toldAt.get(request.id) ?? performance.now())) / 1000;
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  /** Draw soon: many changes that come together are one. */
  draw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const [, , fits] = FILTERS.find(([name]) => name === this.filter) ?? FILTERS[0];
    const all = [...this.requests.values()];
    const shown = all.filter(fits).sort((one, other) => other.at - one.at);
    this.list.show(shown);
    show(this.list.element, shown.length > 0);
    show(this.empty, shown.length === 0);
    if (!shown.length) this.drawEmpty(all.length > 0);
  }

  /** @param {boolean} isFiltered */
  drawEmpty(isFiltered) {
    const told = String(isFiltered);
    if (this.empty.dataset.told === told) return;
    this.empty.dataset.told = told;
    if (isFiltered) {
      this.empty.replaceChildren(make("h2", {}, "No request matches"), make("p", {}, "There are others."), button("plainbutton", "Show all", () => this.use("all")));
      return;
    }
    const origin = new URL("..", import.meta.url).href.replace(/\/$/, "");
    this.empty.replaceChildren(
      make("h2", {}, "No requests yet"),
      make("p", {}, "Point a client at this gateway, and its requests show up here as they happen: what came in, what went back and why, what went out."),
      make("dl.facts", {},
        make("dt", {}, "OpenAI"), make("dd", {}, make("code", {}, `OPENAI_BASE_URL=${origin}/v1`)),
        make("dt", {}, "Anthropic"), make("dd", {}, make("code", {}, `ANTHROPIC_BASE_URL=${origin}`)),
        make("dt", {}, "Gemini"), make("dd", {}, make("code", {}, `GOOGLE_GEMINI_BASE_URL=${origin}`)),
        make("dt", {}, "Ollama"), make("dd", {}, make("code", {}, `OLLAMA_HOST=${origin}`))),
      make("p", {}, make("code", {}, "asides connect claude"), " prints the settings of one client; it knows others too."));
  }

  tick() {
    if (document.hidden || this.isGone) return;
    this.list.tick();
    if (this.detail.detail && isOpen(this.detail.detail)) this.detail.tick();
  }

  /** @param {string} name */
  use(name) {
    this.filter = name;
    FILTERS.forEach(([each], place) => this.filters[place].setAttribute("aria-pressed", String(each === name)));
    this.drawNow();
  }

  // --- one request ----------------------------------------------------------------------------------------------------

  /** @param {string} id @param {{keepsAddress?: boolean}} [how] */
  open(id, { keepsAddress = false } = {}) {
    if (!id) return;
    if (id !== this.chosen) this.detail.clear();
    this.chosen = id;
    this.list.choose(id);
    this.element.dataset.chosen = "yes";
    if (!keepsAddress) history.replaceState(null, "", `#/requests/${encodeURIComponent(id)}`);
    this.readDetail(0, { takesFocus: !keepsAddress });
  }

  leave() {
    if (!this.chosen) return;
    const id = this.chosen;
    this.chosen = "";
    this.list.choose("");
    delete this.element.dataset.chosen;
    this.detail.clear();
    history.replaceState(null, "", "#/requests");
    this.list.focus(id);
  }

  /** Read the detail of the chosen request, soon. @param {number} delay @param {{takesFocus?: boolean}} [how] */
  readDetail(delay, { takesFocus = false } = {}) {
    // One that waits already will read what is there by then.
    if (this.detailTimer && delay) return;
    window.clearTimeout(this.detailTimer);
    this.detailTimer = window.setTimeout(async () => {
      this.detailTimer = 0;
      this.detailRun += 1;
      const [id, run] = [this.chosen, this.detailRun];
      if (!id) return;
      try {
        const detail = await this.api.get(`/requests/${encodeURIComponent(id)}`, this.stopper.signal);
        if (id !== this.chosen || run !== this.detailRun) return;
        this.toldAt.set(id, performance.now());
        this.detail.show(detail);
        // On a narrow screen the detail takes the place of the list, and the focus goes with it.
        if (takesFocus && !this.scroller.offsetParent) this.detail.title.focus({ preventScroll: true });
      } catch (problem) {
        if (id !== this.chosen || !(problem instanceof this.api.ApiError)) return;
        if (problem.kind === "refused") this.detail.fail(problem.message);
        else if (problem.kind === "key") this.shell?.connection.takes(problem);
      }
    }, delay);
  }

  // --- bodies ---------------------------------------------------------------------------------------------------------

  async turnCapture() {
    try {
      const told = await this.api.send("/requests/settings", "PUT", { captures_bodies: !this.isCapturing });
      this.showCapture(told.captures_bodies);
      this.live.textContent = told.captures_bodies ? `Bodies are kept from now on. ${WHAT_BODIES_ARE}` : "Bodies are no longer kept, and those that were are gone.";
      if (this.chosen) this.readDetail(0);
    } catch (problem) {
      if (!this.shell?.connection.takes(problem)) this.say(problem instanceof Error ? problem.message : "Something went wrong.");
    }
  }

  /** @param {boolean} is */
  showCapture(is) {
    this.isCapturing = is;
    this.capture.setAttribute("aria-pressed", String(is));
    show(this.captureNote, is);
  }

  // --- the keyboard ---------------------------------------------------------------------------------------------------

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    const isLetter = event.key.length === 1;
    if (isLetter && readChoice("keys") === "off") return;
    const inList = target === document.body || this.scroller.contains(target) || target.id === "view";
    if (event.key === "Escape" && this.chosen) this.leave();
    else if (event.key === "j" || (event.key === "ArrowDown" && inList)) this.step(1);
    else if (event.key === "k" || (event.key === "ArrowUp" && inList)) this.step(-1);
    else return;
    event.preventDefault();
  }

  /** Go to the next line; where the detail is beside the list, show it too. @param {number} by */
  step(by) {
    const id = this.list.find(by);
    if (!id) return;
    const isBeside = this.scroller.offsetParent !== null && this.detail.element.offsetParent !== null;
    if (this.scroller.offsetParent === null || (this.chosen && isBeside)) this.open(id);
    if (this.scroller.offsetParent !== null) this.list.focus(id);
  }
}

/** @param {number} time @param {AbortSignal} signal @returns {Promise<void>} */
function wait(time, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

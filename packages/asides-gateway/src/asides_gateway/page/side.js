// @ts-check
// The list of conversations, with search; on a phone it is a drawer.

import * as api from "./api.js";
import { button, make } from "./dom.js";
import { readChoice, turnTheme } from "./preferences.js";

/** @typedef {import("./shapes.js").Entry} Entry */

const MOST_ENTRIES = 60;
const THEMES = /** @type {Record<string, string>} */ ({ auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" });

export class Side {
  /**
   * @param {Pick<import("./app.js").Shell, "session" | "connection">} shell
   * @param {{onForget: () => void, onShortcuts: () => void}} acts
   */
  constructor(shell, { onForget, onShortcuts }) {
    this.shell = shell;
    this.current = "";
    /** @type {Entry[]} */
    this.entries = [];
    this.next = /** @type {string | number | null} */ (null);
    this.asked = 0;
    this.failed = "";
    this.search = /** @type {HTMLInputElement} */ (make("input.field", {
      type: "search", placeholder: "Search", "aria-label": "Search the conversations", autocomplete: "off", oninput: () => this.searchSoon(),
    }));
    this.list = make("div.list", {});
    this.count = make("div.unseen", { role: "status" });
    const theme = button("quiet", THEMES[readChoice("theme")], () => { theme.textContent = THEMES[turnTheme()]; });
    this.requests = make("a", { href: "#/requests" }, "Requests");
    this.element = make("nav.side", { "aria-label": "Conversations" },
      make("a.brand", { href: "#/", "aria-label": "asides: a new conversation" }, "asides", make("i", { "aria-hidden": "true" }, "( )")),
      make("a.new", { href: "#/" }, "New conversation", make("kbd", { "aria-hidden": "true" }, "n")),
      this.search, this.list,
      make("div.foot", {}, this.requests,
        make("div.row", {}, theme, button("quiet", "Shortcuts", onShortcuts),
          shell.session.needs_key && button("quiet", "Forget the key", onForget),
          make("small.num", {}, shell.session.version)),
        this.count));
    this.timer = 0;
    shell.connection.onBack(() => void this.load());
    void this.load();
  }

  focus() {
    /** @type {HTMLElement | null} */ (this.element.querySelector("a.new"))?.focus();
  }

  searchSoon() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.load(), 160);
  }

  /** Fetch the newest entries, or the next page of older ones. @param {boolean} [more] */
  async load(more = false) {
    this.asked += 1;
    const mine = this.asked;
    const query = new URLSearchParams({ limit: String(MOST_ENTRIES) });
    if (this.search.value.trim()) query.set("search", this.search.value.trim());
    if (more && this.next !== null) query.set("before", String(this.next));
    try {
      const page = await api.get(`/conversations?${query}`);
      if (mine !== this.asked) return;
      this.entries = more ? [...this.entries, ...page.conversations] : page.conversations;
      this.next = page.next;
      this.failed = "";
    } catch (problem) {
      if (mine !== this.asked || this.shell.connection.takes(problem)) return;
      this.failed = problem instanceof Error ? problem.message : "";
    }
    this.draw();
    if (this.search.value.trim()) this.count.textContent = `${this.entries.length} found`;
  }

  /** Put a new or changed conversation first. @param {Entry} entry */
  touch(entry) {
    this.entries = [entry, ...this.entries.filter((each) => each.id !== entry.id)];
    this.draw();
  }

  /** Show another title. @param {string} id @param {string} title */
  rename(id, title) {
    this.entries = this.entries.map((each) => (each.id === id ? { ...each, title } : each));
    this.draw();
  }

  /** @param {string} id */
  remove(id) {
    this.entries = this.entries.filter((each) => each.id !== id);
    this.draw();
  }

  /** Mark what is open: an id, "requests", or "". @param {string} id */
  mark(id) {
    this.current = id;
    if (id === "requests") this.requests.setAttribute("aria-current", "page");
    else this.requests.removeAttribute("aria-current");
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.closest(".list a")?.getAttribute("href");
    const scrolled = this.list.scrollTop;
    this.list.replaceChildren(...this.failed ? [make("p.none", {}, this.failed)] : this.drawGroups());
    this.list.scrollTop = scrolled;
    if (focused) /** @type {HTMLElement | null} */ (this.list.querySelector(`a[href="${CSS.escape(focused)}"]`))?.focus();
  }

  drawGroups() {
    if (!this.entries.length) {
      const text = this.search.value.trim() ? "Nothing found." : "Conversations are kept here.";
      return [make("p.none", {}, text)];
    }
    const parts = [];
    let last = "";
    let list = make("ul");
    for (const entry of this.entries) {
      const day = nameDay(entry.updated_at);
      if (day !== last) {
        list = make("ul");
        parts.push(make("h2", {}, day), list);
        last = day;
      }
      const title = entry.title || "Untitled";
      list.append(make("li", {}, make("a", {
        href: `#/c/${encodeURIComponent(entry.id)}`, dir: "auto", title: title.length > 26 ? title : undefined,
        "aria-current": entry.id === this.current ? "page" : undefined,
      }, title)));
    }
    if (this.next !== null) parts.push(button("quiet.more", "Show older ones", () => void this.load(true)));
    return parts;
  }
}

/** @param {string | number} at */
function nameDay(at) {
  const then = new Date(typeof at === "number" ? at * 1000 : at);
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const days = Math.floor((today.getTime() - then.getTime()) / 86_400_000) + 1;
  if (Number.isNaN(days)) return "Earlier";
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days <= 7 ? "This week" : "Earlier";
}

// @ts-check
// The page: asks for the key if it must, draws the shell, and mounts a view for the address.
// #/ a new conversation · #/c/ID a kept one · #/requests[/ID] the inspector.

import * as api from "./api.js";
import { mountChat } from "./chat.js";
import { Connection } from "./connection.js";
import { askToConfirm, showShortcuts } from "./dialogs.js";
import { make } from "./dom.js";
import { KeptThoughts } from "./kept_thoughts.js";
import { askForKey } from "./key_form.js";
import { readChoice } from "./preferences.js";
import { Side } from "./side.js";

/** @typedef {import("./shapes.js").Session} Session */
/** @typedef {import("./shapes.js").Model} Model */
/**
 * What views share.
 * @typedef {object} Shell
 * @property {Session} session
 * @property {Model[]} models
 * @property {Side} side
 * @property {Connection} connection
 * @property {Map<string, string>} drafts what was typed and not sent, by conversation; in memory only
 * @property {KeptThoughts} thoughts thinking that this page saw, by conversation, message and block
 * @property {(hash: string) => void} go
 * @property {(title: string) => void} setTitle
 * @property {() => void} toggleDrawer
 */
/** @typedef {{unmount: () => void, id?: string, keys?: Record<string, () => void>}} View */

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const banner = /** @type {HTMLElement} */ (document.getElementById("banner"));
const connection = new Connection(banner, (problem) => { if (shell) void begin(problem.message); });

/** @type {Shell | null} */
let shell = null;
/** @type {View | null} */
let view = null;
let routed = 0;
/** What the reader typed outlives a change of the key. @type {Map<string, string>} */
const drafts = new Map();
const thoughts = new KeptThoughts();

/** Reach the gateway, and draw the shell. @param {string} [complaint] what is wrong with the key we have */
async function begin(complaint = "") {
  view?.unmount();
  view = null;
  shell = null;
  if (complaint) {
    const had = api.readKey() !== "";
    api.keepKey("");
    await askForKey(root, had ? complaint : "");
  }
  const session = await reach();
  let models = [];
  try {
    models = (await api.get("/models")).models;
  } catch (problem) {
    connection.takes(problem);
  }
  drawShell(session, models);
  await route();
}

/** The session of the gateway, however long that takes. @returns {Promise<Session>} */
async function reach() {
  for (;;) {
    try {
      return await api.get("/session");
    } catch (problem) {
      if (!(problem instanceof api.ApiError)) throw problem;
      if (problem.kind === "key") {
        const had = api.readKey() !== "";
        api.keepKey("");
        await askForKey(root, had ? problem.message : "");
      } else if (problem.kind === "gone") {
        root.replaceChildren();
        await connection.waitForReturn();
      } else {
        root.replaceChildren(make("main.middle", {}, make("div.notecard", {},
          make("h1", {}, "The gateway has a problem"), make("p.problem", {}, problem.message))));
        await new Promise((resolve) => setTimeout(resolve, 5000));
      }
    }
  }
}

/** @param {Session} session @param {Model[]} models */
function drawShell(session, models) {
  const main = make("main.view", { id: "view", tabIndex: -1 });
  const made = {
    session, models, connection, drafts, thoughts,
    go: (/** @type {string} */ hash) => { location.hash = hash; },
    setTitle: (/** @type {string} */ title) => { document.title = title ? `${title} · asides` : "asides"; },
    toggleDrawer,
  };
  const side = new Side(made, { onForget: forgetKey, onShortcuts: showShortcuts });
  shell = { ...made, side };
  const veil = make("button.veil", { type: "button", "aria-label": "Close the list", onclick: toggleDrawer, tabIndex: -1 });
  root.replaceChildren(side.element, veil, main);
  root.dataset.drawer = "closed";
}

function toggleDrawer() {
  const open = root.dataset.drawer !== "open";
  root.dataset.drawer = open ? "open" : "closed";
  if (open) shell?.side.focus();
  else /** @type {HTMLElement | null} */ (root.querySelector(".menu"))?.focus();
}

async function forgetKey() {
  const sure = await askToConfirm("Forget the key?", "The page asks for it again. Conversations stay where they are.", "Forget");
  if (!sure) return;
  api.keepKey("");
  drafts.clear();
  thoughts.forget("");
  await begin("forgotten");
}

/** Mount the view of the address. */
async function route() {
  if (!shell) return;
  routed += 1;
  const mine = routed;
  const [room = "", id = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decodePart);
  const main = /** @type {HTMLElement} */ (document.getElementById("view"));
  const known = view?.id;
  root.dataset.drawer = "closed";
  if (room === "c" && known !== undefined && known === id) return;
  view?.unmount();
  view = null;
  main.replaceChildren();
  if (room === "requests") {
    shell.side.mark("requests");
    shell.setTitle("Requests");
    const mounted = await mountRequests(main, id);
    if (mine === routed) view = mounted;
    else mounted.unmount();
  } else {
    shell.side.mark(room === "c" ? id : "");
    shell.setTitle("");
    view = mountChat(main, shell, room === "c" ? id : "");
  }
}

/** @param {string} part */
function decodePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Load a style sheet once; settled when it is there, or cannot be had. @param {string} name @returns {Promise<void>} */
function loadStyle(name) {
  if (document.querySelector(`link[href="${name}"]`)) return Promise.resolve();
  return new Promise((resolve) => {
    document.head.append(make("link", { rel: "stylesheet", href: name, onload: () => resolve(), onerror: () => resolve() }));
  });
}

/** @param {HTMLElement} main @param {string} id "": no request is chosen @returns {Promise<View>} */
async function mountRequests(main, id) {
  const name = "./inspector.js";
  try {
    const [{ mountInspector }] = await Promise.all([import(name), loadStyle("inspector.css")]);
    return { unmount: mountInspector(main, api, shell, id) };
  } catch {
    main.append(make("div.middle", {}, make("div.notecard", {},
      make("h1", {}, "Requests"), make("p", {}, "The inspector could not be loaded. Reload the page."))));
    return { unmount: () => {} };
  }
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (!shell || event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && root.dataset.drawer === "open") {
    toggleDrawer();
    return;
  }
  const target = /** @type {HTMLElement} */ (event.target);
  const writes = target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  if (event.key === "Escape") {
    view?.keys?.Escape?.();
    return;
  }
  if (writes || readChoice("keys") === "off") return;
  const acts = {
    "?": showShortcuts,
    n: () => shell?.go("#/"),
    r: () => shell?.go("#/requests"),
    s: () => { root.dataset.drawer = "open"; shell?.side.search.focus(); },
    ...view?.keys,
  };
  const act = /** @type {Record<string, () => void>} */ (acts)[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

document.addEventListener("keydown", onKey);
window.addEventListener("hashchange", () => void route());
void begin();

// @ts-check
// Asks the gateway: JSON, and streams of server-sent events over fetch. The key is in sessionStorage and in a header,
// never in an address.

const ROOT = new URL("api", import.meta.url).pathname;
const KEY = "asides.key";

/** What went wrong with a request. The kind says what a view can do about it. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{kind: "key" | "gone" | "left" | "refused", status?: number, code?: string, detail?: any}} what
   *   key: it is missing or wrong; gone: the gateway does not answer; left: we stopped; refused: the gateway said no
   */
  constructor(message, { kind, status = 0, code = "", detail = null }) {
    super(message);
    this.name = "ApiError";
    this.kind = kind;
    this.status = status;
    this.code = code;
    this.detail = detail;
  }
}

/** @returns {string} */
export function readKey() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Keep the key for this tab; "": forget it. @param {string} key */
export function keepKey(key) {
  try {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without storage the key lasts until the page is reloaded: there is nowhere else to keep it.
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: unknown, signal?: AbortSignal, accept?: string}} how
 * @returns {Promise<Response>}
 */
async function ask(path, { method = "GET", body, signal, accept = "application/json" }) {
  /** @type {Record<string, string>} */
  const headers = { accept };
  const key = readKey();
  // A header takes Latin letters only; a key with others cannot be right, and the gateway should say so.
  if (key) headers.authorization = `Bearer ${key.replace(/[^\x21-\x7e]/g, "?")}`;
  if (method !== "GET") headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(ROOT + path, {
      method, headers, signal, body: method === "GET" ? undefined : JSON.stringify(body ?? {}),
      cache: "no-store", credentials: "same-origin", redirect: "error", referrerPolicy: "no-referrer",
    });
  } catch (problem) {
    throw whyBroken(problem, signal);
  }
  if (!response.ok) throw await readProblem(response);
  return response;
}

/** @param {unknown} problem @param {AbortSignal | undefined} signal */
function whyBroken(problem, signal) {
  if (problem instanceof ApiError) return problem;
  if (signal?.aborted) return new ApiError("Stopped.", { kind: "left" });
  return new ApiError("The gateway does not answer.", { kind: "gone" });
}

/** @param {Response} response */
async function readProblem(response) {
  let error = null;
  try {
    error = (await response.json()).error;
  } catch {
    // A proxy in between answers with a page of its own.
  }
  const message = typeof error?.message === "string" ? error.message : `The gateway answered with status ${response.status}.`;
  const between = [502, 503, 504].includes(response.status) && error === null;
  const kind = response.status === 401 ? "key" : between ? "gone" : "refused";
  return new ApiError(message, { kind, status: response.status, code: String(error?.code ?? ""), detail: error });
}

/** @param {string} path @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function get(path, signal) {
  return readJson(await ask(path, { signal }), signal);
}

/** @param {string} path @param {string} method @param {unknown} [body] @returns {Promise<any>} */
export async function send(path, method, body) {
  const response = await ask(path, { method, body });
  return response.status === 204 ? null : readJson(response, undefined);
}

/** @param {Response} response @param {AbortSignal | undefined} signal */
async function readJson(response, signal) {
  try {
    return await response.json();
  } catch (problem) {
    throw whyBroken(problem, signal);
  }
}

/**
 * Follow a stream of events until it ends. Each event comes as its name and its JSON.
 * @param {string} path
 * @param {{method?: string, body?: unknown}} how
 * @param {(name: string, data: any) => void} onEvent
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export async function events(path, how, onEvent, signal) {
  const response = await ask(path, { ...how, signal, accept: "text/event-stream" });
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parse = makeParser(onEvent);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parse(decoder.decode(value, { stream: true }));
    }
  } catch (problem) {
    throw whyBroken(problem, signal);
  }
}

/**
 * Parse server-sent events from text in any pieces. Time goes with the text: a piece is searched once.
 * @param {(name: string, data: any) => void} onEvent
 * @returns {(text: string) => void}
 */
function makeParser(onEvent) {
  /** @type {string[]} */
  let waiting = [];
  let name = "";
  /** @type {string[]} */
  let data = [];

  /** @param {string} line */
  function take(line) {
    if (line === "") {
      if (data.length) onEvent(name || "message", JSON.parse(data.join("\n")));
      name = "";
      data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }

  return (text) => {
    let from = 0;
    for (;;) {
      const end = text.indexOf("\n", from);
      if (end < 0) break;
      waiting.push(text.slice(from, end));
      const line = waiting.join("");
      waiting = [];
      take(line.endsWith("\r") ? line.slice(0, -1) : line);
      from = end + 1;
    }
    if (from < text.length) waiting.push(text.slice(from));
  };
}

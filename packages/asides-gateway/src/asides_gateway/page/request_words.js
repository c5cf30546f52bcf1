// @ts-check
// What is known of a request, in plain words: clients, dialects, states, decisions.

/**
 * @typedef {"waiting" | "thinking" | "answering" | "done" | "failed" | "left"} State
 * @typedef {{code: string, detail: string, setting?: string | null}} Told
 * @typedef {{action: string, what: string, message: number, part: number | null, why: string, since: string, source: string}} Decision
 * @typedef {{method: string, url: string, model: string, headers: Record<string, string>, bytes: number, after: number, repaired: boolean}} Sent
 * @typedef {object} Summary
 * @property {string} id
 * @property {string} [instance] the other process that has answered it
 * @property {number} at
 * @property {string} method
 * @property {string} path
 * @property {string} dialect
 * @property {string} client
 * @property {string} model_asked
 * @property {string} model
 * @property {string} provider
 * @property {string} target_dialect
 * @property {"forward" | "translate" | "own"} mode
 * @property {string} reason
 * @property {number} status
 * @property {State} state
 * @property {{first_event: number | null, first_thought: number | null, first_answer: number | null, total: number | null}} timing
 * @property {[State, number][]} spans
 * @property {number} elapsed
 * @property {import("./shapes.js").Usage} usage
 * @property {number | null} cost in US dollars
 * @property {string | null} cost_origin
 * @property {number} restored
 * @property {number} missed
 * @property {number} attempts
 * @property {number} repairs
 * @property {string[]} notices
 * @property {{message: string, code: string}} [error]
 */
/**
 * @typedef {{model?: string, stream?: boolean, messages?: number, has_system?: boolean, tools?: number, thinking?: string, max_tokens?: number | null, bytes: number, headers: Record<string, string>}} Asked
 * @typedef {Omit<Summary, "notices"> & {asked: Asked, decisions: Decision[], notices: Told[], events: Record<string, number>, sent: Sent[], sent_bytes: number, has_bodies: boolean, request_body?: unknown, sent_bodies?: unknown[], curl: string}} Detail
 */

/** Clients by the beginning of their User-Agent, in lower case. */
const CLIENTS = [
  ["claude-cli", "Claude Code"],
  ["claude-code", "Claude Code"],
  ["codex", "Codex"],
  ["geminicli", "Gemini CLI"],
  ["opencode", "opencode"],
  ["ai-sdk", "AI SDK"],
  ["qwencode", "Qwen Code"],
  ["qwen", "Qwen Code"],
  ["open-webui", "Open WebUI"],
  ["openwebui", "Open WebUI"],
  ["openai/python", "openai for Python"],
  ["asyncopenai/python", "openai for Python"],
  ["openai-python", "openai for Python"],
  ["openai/js", "openai for JavaScript"],
  ["anthropic/python", "anthropic for Python"],
  ["asyncanthropic/python", "anthropic for Python"],
  ["anthropic/js", "anthropic for JavaScript"],
  ["google-genai-sdk", "google-genai"],
  ["ollama", "ollama"],
  ["cohere", "cohere"],
  ["boto3", "boto3"],
  ["aws-sdk", "AWS SDK"],
  ["python-httpx", "httpx"],
  ["python-requests", "requests"],
  ["curl", "curl"],
  ["mozilla", "a browser"],
  ["asides", "asides"],
];

/** @param {string} client the first word of a User-Agent */
function nameClient(client) {
  const lower = client.toLowerCase();
  const known = CLIENTS.find(([start]) => lower.startsWith(start));
  return known ? known[1] : client.split("/")[0] || "a client";
}

/** Who asked. @param {{client: string, dialect: string}} request */
export function nameCaller({ client, dialect }) {
  return dialect === PAGE ? "this page" : nameClient(client);
}

/** What turns of the page's own conversations have for a dialect. */
export const PAGE = "page";

/** @type {Record<string, string>} */
const DIALECTS = { openai_chat: "chat", openai_responses: "responses", anthropic: "messages", gemini: "gemini", bedrock: "converse", cohere: "cohere", ollama: "ollama" };

/** @param {string} dialect */
export function nameDialect(dialect) {
  return DIALECTS[dialect] ?? dialect;
}

/** @type {Record<State, string>} */
export const STATES = { waiting: "waiting", thinking: "thinking", answering: "answering", done: "done", failed: "failed", left: "left by its client" };

/** Whether a request is under way. @param {{state: State}} request */
export function isOpen({ state }) {
  return state === "waiting" || state === "thinking" || state === "answering";
}

/** The model without its provider. @param {string} model */
export function shortModel(model) {
  return model.slice(model.indexOf(":") + 1);
}

/** Where a request went: the provider's name, or what it asked of the gateway itself. @param {Summary | Detail} request */
export function nameTarget(request) {
  if (request.provider) return request.provider;
  return request.mode === "own" ? "the gateway itself" : "no provider yet";
}

/**
 * The end of a line, most important first.
 * @param {Summary} request
 * @returns {{text: string, tone: "" | "good" | "bad" | "accent"}[]}
 */
export function listMarks(request) {
  /** @type {{text: string, tone: "" | "good" | "bad" | "accent"}[]} */
  const marks = [];
  if (request.state === "failed") marks.push({ text: request.status ? `failed, ${request.status}` : "failed", tone: "bad" });
  if (request.state === "left") marks.push({ text: "left", tone: "" });
  if (request.repairs) marks.push({ text: request.state === "done" ? "healed" : "repaired", tone: "accent" });
  if (request.restored) marks.push({ text: `${request.restored} restored`, tone: "accent" });
  if (request.missed) marks.push({ text: `${request.missed} not found`, tone: "" });
  if (request.attempts > 1 + request.repairs) marks.push({ text: `${request.attempts} attempts`, tone: "" });
  if (request.mode === "forward") marks.push({ text: "forwarded", tone: "good" });
  if (request.mode === "translate") marks.push({ text: "translated", tone: "" });
  return marks;
}

/** @type {Record<string, {text: string, tone: string}>} */
const ACTIONS = {
  keep: { text: "kept", tone: "good" },
  drop: { text: "dropped", tone: "" },
  convert: { text: "converted", tone: "" },
  restore: { text: "restored", tone: "accent" },
  miss: { text: "not found", tone: "" },
};

/** @param {string} action */
export function nameAction(action) {
  return ACTIONS[action] ?? { text: action, tone: "" };
}

/** @type {Record<string, string>} */
const THINGS = { thought: "thought", seal: "seal", refusal: "refusal", message: "the whole message", part: "part", state: "reasoning state of this turn", tool_call: "call of a tool" };

/** What a decision is about. @param {Decision} decision */
export function nameThing({ what, part }) {
  const name = THINGS[what] ?? what.replaceAll("_", " ");
  return part === null || what === "message" ? name : `${name}, part ${part + 1}`;
}

/** Since when a rule holds, and who says so. Where state came from, its reason says. @param {Decision} decision @returns {{since: string, source: string, link: string}} */
export function nameSource({ action, since, source }) {
  if (action === "restore" || action === "miss") return { since: "", source: "", link: "" };
  const link = /^https:\/\//.test(source) ? source : "";
  return { since: since ? `since ${since}` : "", source: link ? new URL(link).host : source, link };
}

/** @type {Record<string, string>} */
const EVENTS = { reply_started: "start", thinking: "thinking", sealed: "seals", text: "text", commentary: "commentary", refusal: "refusal", tool_call: "calls", part: "parts", usage: "usage", warned: "notices", reply_ended: "end" };

/** @param {string} kind */
export function nameEvent(kind) {
  return EVENTS[kind] ?? kind;
}

/** A sentence for a screen reader. @param {Summary} request */
export function describeState(request) {
  const where = request.model ? ` of ${shortModel(request.model)}` : "";
  if (request.state === "failed") return `The request${where} failed.`;
  if (request.state === "left") return `The client left the request${where}.`;
  if (request.state === "done") return `The request${where} is done.`;
  return `The request${where} is ${request.state}.`;
}

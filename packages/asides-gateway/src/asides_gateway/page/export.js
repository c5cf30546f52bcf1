// @ts-check
// Writes a conversation into a file of the reader: Markdown to read, JSON for programs.

import * as api from "./api.js";
import { make } from "./dom.js";

/** @typedef {import("./shapes.js").Conversation} Conversation */
/** @typedef {import("./shapes.js").Message} Message */

const PAGE = 200;

/** @param {string} id @param {"md" | "json"} form @param {(key: string) => string} seen words of thoughts that this page saw */
export async function exportConversation(id, form, seen) {
  const { conversation, messages } = await readAll(id, seen);
  const text = form === "json" ? `${JSON.stringify({ ...conversation, messages }, null, 2)}\n` : writeMarkdown(conversation, messages);
  const name = (conversation.title || "conversation").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "conversation";
  const url = URL.createObjectURL(new Blob([text], { type: form === "json" ? "application/json" : "text/markdown" }));
  const link = /** @type {HTMLAnchorElement} */ (make("a", { href: url, download: `${name}.${form}`, hidden: true }));
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @param {string} id @param {(key: string) => string} seen */
async function readAll(id, seen) {
  /** @type {Message[]} */
  const messages = [];
  /** @type {any} */
  let conversation = null;
  for (let before = /** @type {string | number | null} */ (null); ;) {
    /** @type {Conversation} */
    const page = await api.get(`/conversations/${encodeURIComponent(id)}?limit=${PAGE}${before === null ? "" : `&before=${before}`}`);
    messages.unshift(...page.messages);
    conversation ??= { title: page.title, model: page.model, thinking: page.thinking, system: page.system ?? null };
    before = page.next;
    if (before === null) break;
  }
  for (const message of messages) {
    let place = 0;
    for (const block of message.blocks) {
      if (block.type !== "thought") continue;
      block.text ||= seen(`${id}/${message.id}/${place}`);
      place += 1;
    }
  }
  return { conversation, messages };
}

/** @param {any} conversation @param {Message[]} messages */
function writeMarkdown(conversation, messages) {
  const lines = [`# ${conversation.title || "Conversation"}`, ""];
  if (conversation.system) lines.push("## Instructions", "", conversation.system, "");
  for (const message of messages) {
    if (message.role === "user") lines.push("## Question", "");
    else if (message.role === "assistant") lines.push(`## Answer${message.model ? ` (${message.model})` : ""}`, "");
    for (const block of message.blocks) lines.push(...writeBlock(block), "");
    if (message.stopped) lines.push(`*${message.stopped === "stopped" ? "Stopped." : `Ended: ${message.stopped}.`}*`, "");
  }
  return `${lines.join("\n").trimEnd()}\n`;
}

/** @param {import("./shapes.js").Block} block @returns {string[]} */
function writeBlock(block) {
  if (block.type === "text") return [block.text];
  if (block.type === "thought") return [block.text ? quote(`**Thinking**\n\n${block.text}`) : `> **Thinking** (its words are not here)`];
  if (block.type === "call") return [`**Call** \`${block.name}\``, "", ...fence(typeof block.arguments === "string" ? block.arguments : JSON.stringify(block.arguments, null, 2))];
  if (block.type === "result") return [`**Result**${block.is_error ? " (failed)" : ""}`, "", ...fence(block.text)];
  return [block.type === "file" ? `*File: ${block.name || block.media_type || "unnamed"}*` : "*A part that is not shown*"];
}

/** @param {string} text */
function quote(text) {
  return text.split("\n").map((line) => (line ? `> ${line}` : ">")).join("\n");
}

/** @param {string} text */
function fence(text) {
  let marks = "```";
  while (text.includes(marks)) marks += "`";
  return [marks, text, marks];
}

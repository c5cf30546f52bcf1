// @ts-check
// The shapes of the API's JSON, for the type checker.

/** @typedef {{type: "text", text: string, commentary?: boolean}} TextBlock */
/** @typedef {{type: "thought", text: string, kind: string, seconds?: number | null, tokens?: number | null}} ThoughtBlock */
/** @typedef {{type: "call", id: string, name: string, arguments: unknown}} CallBlock */
/** @typedef {{type: "result", id: string, name?: string, text: string, is_error?: boolean}} ResultBlock */
/** @typedef {{type: "file", name?: string, media_type?: string, bytes?: number, data?: string}} FileBlock */
/** @typedef {{type: "unknown"}} UnknownBlock */
/** @typedef {TextBlock | ThoughtBlock | CallBlock | ResultBlock | FileBlock | UnknownBlock} Block */
/** Seconds from the question on. @typedef {{first_thought?: number, first_word?: number, thinking?: number, total?: number}} Timing */
/** @typedef {{code: string, detail: string}} Notice */
/** @typedef {{input?: number | null, output?: number | null, thinking?: number | null, cached?: number | null}} Usage */
/** @typedef {{id: number, role: "user" | "assistant" | "tool", model?: string, blocks: Block[], usage?: Usage | null, cost?: number | null, stopped?: string | null, error?: string | null, notices?: Notice[], timing?: Timing | null}} Message */
/** @typedef {{id: string, title: string, model: string, updated_at: string | number, messages: number}} Entry */
/** @typedef {{id: string, title: string, model: string, thinking: string | number | null, system?: string | null, length: number, answering: boolean, messages: Message[], next: string | number | null}} Conversation */
/** @typedef {{id: string, provider: string, thinks: boolean, efforts: string[]}} Model */
/** @typedef {{version: string, workers: number, needs_key: boolean, store: string, default_model: string | null, efforts: string[], keeps_thinking: boolean, inspector: {captures_bodies: boolean}}} Session */

/** A file that is sent with a question, in base64. @typedef {{name: string, data: string, media_type: string, bytes: number}} Attached */

export {};

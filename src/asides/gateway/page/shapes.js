// @ts-check
// The shapes of the API's JSON, for the type checker.

/** @typedef {{type: "text", text: string}} TextBlock */
/** @typedef {{type: "thought", text: string, kind: string, seconds?: number | null, tokens?: number | null}} ThoughtBlock */
/** @typedef {{type: "call", id: string, name: string, arguments: unknown}} CallBlock */
/** @typedef {{type: "result", id: string, name?: string, text: string, is_error?: boolean}} ResultBlock */
/** @typedef {TextBlock | ThoughtBlock | CallBlock | ResultBlock} Block */
/** @typedef {{code: string, detail: string}} Notice */
/** @typedef {{input?: number | null, output?: number | null, thinking?: number | null, cached?: number | null}} Usage */
/** @typedef {{id: number, role: "user" | "assistant" | "tool", model?: string, blocks: Block[], usage?: Usage | null, cost?: number | null, stopped?: string | null, notices?: Notice[], timing?: any}} Message */
/** @typedef {{id: string, title: string, model: string, updated_at: string | number, messages: number}} Entry */
/** @typedef {{id: string, title: string, model: string, thinking: string | null, messages: Message[], next: string | number | null}} Conversation */
/** @typedef {{id: string, provider: string, thinks: boolean, efforts: string[]}} Model */
/** @typedef {{version: string, workers: number, needs_key: boolean, store: string, default_model: string | null, efforts: string[], inspector: {captures_bodies: boolean}}} Session */

export {};

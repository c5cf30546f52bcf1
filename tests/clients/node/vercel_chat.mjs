// A chat of Vercel's AI SDK without a page: it posts to `url` as useChat does, and prints what it holds in the end.
// node vercel_chat.mjs PACKAGES PACKAGE URL '["first question", "second question"]' [tool outputs by name, as JSON]
import { createRequire } from "node:module";

const [packages, name, url, questions, outputs] = process.argv.slice(2);
const ai = createRequire(`${packages}/package.json`)(name);
const answers = JSON.parse(outputs ?? "{}");

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => this.messages.push(message);
  popMessage = () => this.messages.pop();
  replaceMessage = (place, message) => (this.messages[place] = structuredClone(message));
  snapshot = (value) => structuredClone(value);
}

class Chat extends ai.AbstractChat {}

const seen = { finished: [], headers: [], errors: [] };
let calls = [];
const chat = new Chat({
  state: new State(),
  transport: new ai.DefaultChatTransport({
    api: url,
    fetch: async (...request) => {
      const response = await fetch(...request);
      seen.headers.push(Object.fromEntries(response.headers));
      return response;
    },
  }),
  onToolCall: ({ toolCall }) => void calls.push(toolCall),
  onFinish: ({ isAbort, isError, finishReason }) => seen.finished.push({ isAbort, isError, finishReason }),
  onError: (error) => seen.errors.push(error.message),
  sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithToolCalls,
});

for (const text of JSON.parse(questions)) {
  await chat.sendMessage({ text });
  while (calls.some((call) => call.toolName in answers)) {
    const waiting = calls.filter((call) => call.toolName in answers);
    calls = [];
    for (const call of waiting) {
      const output = { tool: call.toolName, toolCallId: call.toolCallId, output: answers[call.toolName] };
      await (chat.addToolOutput ?? chat.addToolResult)(output);
    }
    while (chat.status === "submitted" || chat.status === "streaming") await new Promise((done) => setTimeout(done, 10));
  }
}
const messages = chat.messages;
const valid = await (ai.validateUIMessages?.({ messages }) ?? messages);
const prompt = await ai.convertToModelMessages(messages);
console.log(JSON.stringify({ ...seen, status: chat.status, messages, valid: valid.length, prompt }));

// A client of AG-UI: it posts to `url`, checks the order of the events, and prints the messages that it holds in the end.
// node ag_ui_agent.mjs PACKAGES URL '["first question", "second question"]'
import { createRequire } from "node:module";

const [packages, url, questions] = process.argv.slice(2);
const { HttpAgent } = createRequire(`${packages}/package.json`)("@ag-ui/client");
const agent = new HttpAgent({ url });
const seen = { events: [], errors: [], finished: [] };
const subscriber = {
  onEvent: ({ event }) => void seen.events.push(event.type),
  onRunErrorEvent: ({ event }) => void seen.errors.push({ message: event.message, code: event.code }),
  onRunFinishedEvent: ({ event, pendingToolCallIds }) =>
    void seen.finished.push({ outcome: event.outcome, usage: event.usage, pendingToolCallIds }),
};

let place = 0;
for (const content of JSON.parse(questions)) {
  agent.addMessage({ id: `question-${place++}`, role: "user", content });
  try {
    await agent.runAgent({}, subscriber);
  } catch (error) {
    seen.errors.push({ message: error.message });
  }
}
console.log(JSON.stringify({ ...seen, messages: agent.messages }));

// @ts-check
// One answer on its way: follows the events of a turn and draws them, at most once a frame.

import * as api from "./api.js";

/** How a turn ended. @typedef {{how: "ended" | "error" | "left" | "broken", data: any, started: {message_id: number, question_id: number, request_id: string, model: string} | null}} End */

/**
 * @param {string} path @param {object} body @param {import("./answer.js").Answer} answer
 * @param {{onStart: (started: any) => void, onDraw: () => void, announcer: import("./announcer.js").Announcer, signal: AbortSignal}} around
 * @returns {Promise<End>} @throws {api.ApiError} when the gateway did not begin
 */
export async function followTurn(path, body, answer, { onStart, onDraw, announcer, signal }) {
  /** @type {End} */
  const end = { how: "broken", data: null, started: null };
  let frame = 0;
  const draw = () => {
    frame = 0;
    answer.flush();
    onDraw();
  };
  // A hidden tab has no frames, and its text should not pile up.
  const drawSoon = () => { frame ||= document.hidden ? window.setTimeout(draw, 200) : requestAnimationFrame(draw); };
  const clock = setInterval(() => answer.tick(), 500);

  /** @param {string} name @param {any} data */
  function take(name, data) {
    if (name === "started") {
      end.started = data;
      onStart(data);
    } else if (name === "thought") {
      if (!answer.thoughts.has(String(data.block))) announcer.say("Thinking.");
      answer.think(String(data.block), data.kind, data.text);
    } else if (name === "thought_end") answer.thoughts.get(String(data.block))?.end(data);
    else if (name === "text") {
      answer.write(String(data.block), data.text, data.commentary);
      announcer.feed(data.text);
    } else if (name === "text_moved") answer.takeBack(String(data.block));
    else if (name === "call") {
      answer.call(data);
      announcer.say(`It calls ${data.name}.`);
    } else if (name === "notice") answer.notice(data);
    else if (name === "ended" || name === "error") {
      end.how = name;
      end.data = data;
    }
    drawSoon();
  }

  try {
    await api.events(path, { method: "POST", body }, take, signal);
  } catch (problem) {
    if (!end.started || !(problem instanceof api.ApiError)) throw problem;
    end.how = signal.aborted ? "left" : end.how;
  } finally {
    clearInterval(clock);
    answer.end(end.how !== "ended");
    answer.flush();
    announcer.end();
    onDraw();
  }
  if (signal.aborted && end.how === "broken") end.how = "left";
  return end;
}

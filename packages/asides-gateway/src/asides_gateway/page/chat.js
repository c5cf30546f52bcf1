// @ts-check
// The chat: a conversation, from its earlier messages to the answer that is being written, and the field below.

import { Announcer } from "./announcer.js";
import { Answer } from "./answer.js";
import * as api from "./api.js";
import { ChatHeader } from "./chat_header.js";
import { Composer } from "./composer.js";
import { askForText, askToConfirm } from "./dialogs.js";
import { button, copyText, make } from "./dom.js";
import { exportConversation } from "./export.js";
import { formatSeconds } from "./figures.js";
import { Follower } from "./follower.js";
import { Question } from "./question.js";
import { followTurn } from "./turn.js";
import { makeWelcome } from "./welcome.js";

/** @typedef {import("./app.js").Shell} Shell */
/** @typedef {import("./shapes.js").Message} Message */
/** @typedef {import("./shapes.js").Conversation} Conversation */

/** Messages that are drawn at first, and more of them each time the top comes near. */
const WINDOW = 40;
const STOPS = /** @type {Record<string, string>} */ ({
  stopped: "Stopped.",
  length: "The answer reached its length limit.",
  starved: "It thought until its tokens were used up, and wrote no answer.",
  unterminated: "The answer broke off.",
  refused: "The model declined to answer.",
  filtered: "The provider held the answer back.",
  error: "The answer broke off.",
});
/** Chats whose answer is still on its way while another view is shown. @type {Map<string, Chat>} */
const running = new Map();
/** A question that a fork begins with, by conversation. @type {Map<string, string>} */
const toAsk = new Map();

/** @param {HTMLElement} root @param {Shell} shell @param {string} id "": a new conversation @returns {import("./app.js").View} */
export function mountChat(root, shell, id) {
  const chat = running.get(id) ?? new Chat(shell, id);
  running.delete(id);
  root.append(chat.element);
  chat.mounted();
  return {
    get id() { return chat.id; },
    unmount: () => {
      chat.element.remove();
      if (chat.stopper && chat.id) running.set(chat.id, chat);
      else chat.close();
    },
    keys: {
      Escape: () => chat.stop(),
      t: () => chat.header.foldAll(),
      i: () => chat.composer.field.focus(),
      m: () => { chat.composer.model.input.focus(); chat.composer.model.open(true); },
      c: () => void chat.copyLast(),
    },
  };
}

class Chat {
  /** @param {Shell} shell @param {string} id */
  constructor(shell, id) {
    this.shell = shell;
    this.id = id;
    this.next = /** @type {string | number | null} */ (null);
    this.loading = false;
    this.closed = false;
    this.stopper = /** @type {AbortController | null} */ (null);
    /** @type {Question[]} */
    this.questions = [];
    /** @type {Answer[]} */
    this.answers = [];
    this.announcer = new Announcer(/** @type {HTMLElement} */ (document.getElementById("sentences")));
    this.talk = make("div.talk", {});
    this.scroller = make("div.scroller", { role: "region", "aria-label": "Conversation", tabIndex: 0 }, this.talk);
    this.follower = new Follower(this.scroller, () => void this.loadEarlier());
    this.header = new ChatHeader(this.talk, {
      onRename: (title) => void this.rename(title), onDelete: () => void this.delete(), onMenu: shell.toggleDrawer,
      onInstruct: () => void this.instruct(), onExport: (form) => void this.export(form), onKeep: (keeps) => shell.thoughts.choose(keeps),
    });
    this.header.showKeep(shell.thoughts.keeps, shell.session.keeps_thinking);
    this.system = "";
    this.composer = new Composer(shell.models, shell.session.efforts, {
      onSend: (text, files) => void this.send(text, files), onStop: () => this.stop(), onEditLast: () => this.questions.at(-1)?.openEditor(),
      onDraft: (text) => this.keepDraft(text), onModel: (model) => void this.change({ model }), onEffort: (thinking) => void this.change({ thinking }),
      onProblem: (problem) => this.complain(new Error(problem)),
    });
    this.element = make("div.chat", {}, this.header.element, this.scroller, make("div.ask", {}, this.follower.jump, this.composer.element));
    this.unhook = shell.connection.onBack(() => { if (!this.stopper && this.id) void this.load(); });
    const draft = shell.drafts.get(this.id);
    if (draft) this.composer.setText(draft);
    if (id) void this.load();
    else this.begin();
  }

  mounted() {
    this.composer.grow();
    this.follower.follow();
    if (window.matchMedia("(hover: hover)").matches) this.composer.field.focus({ preventScroll: true });
  }

  close() {
    this.closed = true;
    this.stopper?.abort();
    this.unhook();
  }

  /** @param {string} text */
  keepDraft(text) {
    if (text) this.shell.drafts.set(this.id, text);
    else this.shell.drafts.delete(this.id);
  }

  /** An empty conversation, which is made when something is asked. */
  begin() {
    const { session, models } = this.shell;
    const model = session.default_model ?? models[0]?.id ?? "";
    this.composer.choose(model, null);
    this.talk.replaceChildren(makeWelcome(model !== "", (text) => void this.send(text)));
  }

  // --- what is kept ---

  async load() {
    this.loading = true;
    /** @type {Conversation} */
    let kept;
    try {
      kept = await api.get(`/conversations/${encodeURIComponent(this.id)}?limit=${WINDOW}`);
    } catch (problem) {
      this.loading = false;
      if (!this.shell.connection.takes(problem)) this.showAbsent(problem);
      return;
    }
    this.loading = false;
    this.talk.replaceChildren();
    this.questions = [];
    this.answers = [];
    this.header.clear();
    this.setTitle(kept.title);
    this.setSystem(kept.system ?? "");
    this.header.setKept(true);
    this.composer.choose(kept.model ?? "", kept.thinking === null ? null : String(kept.thinking));
    this.next = kept.next;
    this.talk.append(...this.drawMessages(kept.messages, true));
    this.follower.toEnd();
    const first = toAsk.get(this.id);
    toAsk.delete(this.id);
    if (first) void this.send(first);
    else if (kept.answering) void this.waitForAnswer();
  }

  /** Another tab, or a page that was left, has an answer under way: show the conversation again when it has ended. */
  async waitForAnswer() {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      if (this.closed || this.stopper || this.loading) return;
      try {
        /** @type {Conversation} */
        const kept = await api.get(`/conversations/${encodeURIComponent(this.id)}?limit=1`);
        if (kept.answering) continue;
      } catch (problem) {
        this.shell.connection.takes(problem);
        return;
      }
      if (!this.closed && !this.stopper) await this.load();
      return;
    }
  }

  async loadEarlier() {
    if (this.loading || this.next === null || !this.id) return;
    this.loading = true;
    try {
      /** @type {Conversation} */
      const kept = await api.get(`/conversations/${encodeURIComponent(this.id)}?limit=${WINDOW}&before=${this.next}`);
      this.next = kept.next;
      this.follower.keep(this.talk, () => this.talk.prepend(...this.drawMessages(kept.messages, false)));
    } catch (problem) {
      this.shell.connection.takes(problem);
    }
    this.loading = false;
  }

  /** Elements for kept messages. An answer may span several: calls, results, and what followed. @param {Message[]} messages @param {boolean} last whether they are the last ones */
  drawMessages(messages, last) {
    /** @type {HTMLElement[]} */
    const made = [];
    /** @type {Question[]} */
    const questions = [];
    /** @type {Answer[]} */
    const answers = [];
    let answer = /** @type {Answer | null} */ (null);
    let message = /** @type {Message | null} */ (null);
    const finish = (/** @type {boolean} */ isLast) => {
      if (!answer || !message) return;
      answer.end();
      this.endAnswer(answer, message, questions.at(-1) ?? null, isLast);
      answer = null;
    };
    for (const each of messages) {
      if (each.role === "user") {
        finish(false);
        const question = this.makeQuestion(each.id, each.blocks);
        questions.push(question);
        made.push(question.element);
      } else {
        if (!answer) {
          answer = new Answer(false);
          answers.push(answer);
          made.push(answer.element);
        }
        answer.add(each, (index) => this.shell.thoughts.get(`${this.id}/${each.id}/${index}`));
        if (each.usage) this.header.add(each);
      }
      message = each;
    }
    finish(last);
    this.questions = last ? questions : [...questions, ...this.questions];
    this.answers = last ? answers : [...answers, ...this.answers];
    if (last && message?.role === "user") made.push(this.drawUnanswered(message));
    return made;
  }

  /** @param {Message} message the unanswered question */
  drawUnanswered(message) {
    const answer = new Answer(false);
    this.answers.push(answer);
    const words = message.error || (message.stopped === "stopped" ? "Stopped, before an answer began." : "There is no answer yet.");
    answer.tell(words, [this.makeContinue("Ask again")], Boolean(message.error));
    return answer.element;
  }

  /** @param {unknown} problem */
  showAbsent(problem) {
    this.header.setTitle("Not here");
    this.talk.replaceChildren(make("div.middle", {}, make("div.notecard", {}, make("h1", {}, "This conversation is not here"),
      make("p", {}, problem instanceof Error ? problem.message : ""), make("div.row", {}, make("a.plainbutton", { href: "#/" }, "Begin another")))));
  }

  // --- a turn ---

  /** @param {string} text @param {import("./shapes.js").Attached[]} [files] */
  async send(text, files = []) {
    if (this.stopper) return;
    this.stopper = new AbortController();
    this.composer.setBusy(true);
    try {
      await this.makeConversation();
    } catch (problem) {
      this.giveBack(text, problem, files);
      return;
    }
    const shown = files.map((file) => /** @type {import("./shapes.js").FileBlock} */ ({
      type: "file", ...file, data: /^image\/(?:png|jpeg|gif|webp)$/.test(file.media_type) ? file.data : undefined }));
    const question = this.makeQuestion(null, [...shown, { type: "text", text }]);
    this.questions.push(question);
    this.talk.append(question.element);
    await this.turn(`/conversations/${this.id}/messages`, { text, ...this.chosen, files: files.map(({ name, data }) => ({ name, data })) }, question, text, files);
  }

  /** Ask for the rest of an answer, or for the answer of a question that has none. */
  async goOn() {
    if (this.stopper || !this.id) return;
    this.stopper = new AbortController();
    this.composer.setBusy(true);
    await this.turn(`/conversations/${this.id}/continue`, this.chosen, this.questions.at(-1) ?? null, null);
  }

  get chosen() {
    const thinking = this.composer.effort.value;
    return { model: this.composer.model.value || undefined, thinking: thinking ?? undefined };
  }

  /** @param {string} path @param {object} body @param {Question | null} question @param {string | null} text to give back if the gateway does not take it, with its files @param {import("./shapes.js").Attached[]} [files] */
  async turn(path, body, question, text, files = []) {
    const stopper = /** @type {AbortController} */ (this.stopper);
    // Only the last answer can go on.
    for (const act of this.talk.querySelectorAll(".told button")) act.remove();
    const answer = new Answer(true);
    this.answers.push(answer);
    const waiting = make("p.waiting", {}, "Waiting for the model");
    answer.element.append(waiting);
    this.talk.append(answer.element);
    this.follower.toEnd();
    let end;
    try {
      end = await followTurn(path, body, answer, {
        onStart: (started) => { if (question && text !== null) question.id = started.question_id; },
        onDraw: () => { if (!answer.isEmpty) waiting.remove(); this.follower.follow(); },
        announcer: this.announcer, signal: stopper.signal,
      });
    } catch (problem) {
      waiting.remove();
      this.stopper = null;
      this.refused(answer, question, text, problem, files);
      return;
    }
    waiting.remove();
    this.stopper = null;
    this.composer.setBusy(false);
    this.finishTurn(answer, question, end);
    if (!this.element.isConnected) {
      running.delete(this.id);
      this.close();
    }
    void this.shell.side.load();
    if (!this.header.text) void this.refreshTitle();
    this.follower.follow();
  }

  /** @param {Answer} answer @param {Question | null} question @param {import("./turn.js").End} end */
  finishTurn(answer, question, end) {
    const { started } = end;
    if (started) {
      [...answer.thoughts.values()].forEach((thought, index) => {
        if (thought.text) this.shell.thoughts.set(`${this.id}/${started.message_id}/${index}`, thought.text);
      });
    }
    if (end.how === "ended") {
      const message = end.data.message ?? { id: started?.message_id ?? 0, role: "assistant", blocks: [] };
      this.fillFigures(answer, message);
      this.header.add(end.data);
      this.endAnswer(answer, { ...message, usage: end.data.usage, cost: end.data.cost, timing: end.data.timing }, question, true, started?.request_id);
    } else if (end.how === "error") {
      const kept = end.data.question_kept !== false;
      if (!kept && question) this.takeBack(question);
      answer.tell(end.data.message, kept ? [this.makeContinue(answer.plainText ? "Continue" : "Try again")] : [], true);
      answer.drawFoot({}, this.makeInspect(started?.request_id));
    } else if (end.how === "left") this.endAnswer(answer, { id: 0, role: "assistant", blocks: [], stopped: "stopped" }, question, true, started?.request_id);
    else {
      answer.tell("The connection broke off. What arrived is kept.", [this.makeContinue("Continue")], true);
      void this.shell.connection.waitForReturn();
    }
  }

  /** The tokens of a thought are known at the end. @param {Answer} answer @param {Message} message */
  fillFigures(answer, message) {
    const thoughts = [...answer.thoughts.values()];
    message.blocks.filter((block) => block.type === "thought").forEach((block, index) => {
      const thought = thoughts[index];
      if (!thought || block.type !== "thought") return;
      thought.tokens = block.tokens ?? thought.tokens;
      thought.tick();
    });
  }

  /**
   * The gateway did not begin. What was asked goes back into the field.
   * @param {Answer} answer @param {Question | null} question @param {string | null} text @param {unknown} problem @param {import("./shapes.js").Attached[]} files
   */
  refused(answer, question, text, problem, files) {
    const left = problem instanceof api.ApiError && problem.kind === "left";
    if (question && text !== null) this.dropQuestion(question);
    answer.element.remove();
    this.answers = this.answers.filter((each) => each !== answer);
    this.giveBack(text ?? "", problem, files);
    if (left) void this.load();
  }

  /** The gateway has removed a question: put it back into the field, unless something else is there. @param {Question} question */
  takeBack(question) {
    if (this.composer.field.value) return;
    this.composer.setText(question.text);
    this.dropQuestion(question);
  }

  /** @param {Question} question */
  dropQuestion(question) {
    question.element.remove();
    this.questions = this.questions.filter((each) => each !== question);
  }

  /** @param {string} text @param {unknown} problem @param {import("./shapes.js").Attached[]} [files] */
  giveBack(text, problem, files = []) {
    if (!this.composer.attachments.files.length) this.composer.attachments.put(files);
    this.stopper = null;
    this.composer.setBusy(false);
    if (text && !this.composer.field.value) this.composer.setText(text);
    if (!this.talk.childNodes.length && !this.id) this.begin();
    this.complain(problem);
  }

  /** Show a problem that no answer has. @param {unknown} problem */
  complain(problem) {
    if (this.shell.connection.takes(problem)) return;
    this.talk.querySelector(".told.of-page")?.remove();
    const words = problem instanceof Error ? problem.message : "Something went wrong.";
    this.talk.append(make("div.told.fault.of-page", { role: "alert" }, make("p", { dir: "auto" }, words)));
    this.follower.toEnd();
  }

  async makeConversation() {
    this.talk.querySelector(".told.of-page")?.remove();
    if (this.id) return;
    const made = await api.send("/conversations", "POST", { ...this.chosen, system: this.system || undefined });
    this.shell.drafts.delete("");
    this.id = made.id;
    this.talk.replaceChildren();
    history.replaceState(null, "", `#/c/${encodeURIComponent(this.id)}`);
    this.header.setKept(true);
    this.shell.side.touch(made);
    this.shell.side.mark(this.id);
  }

  stop() {
    this.stopper?.abort();
  }

  // --- what can be done ---

  /** @param {number | null} id @param {import("./shapes.js").Block[]} blocks */
  makeQuestion(id, blocks) {
    return new Question(id, blocks, { onEdit: (question, text) => void this.forkAndAsk(question, text), onFork: (question) => void this.fork(question) });
  }

  /** @param {string} label */
  makeContinue(label) {
    return button("plainbutton", label, () => void this.goOn());
  }

  /** @param {string | undefined} request */
  makeInspect(request) {
    return request ? [make("a.quiet", { href: `#/requests/${encodeURIComponent(request)}` }, "Inspect")] : [];
  }

  /** @param {Answer} answer @param {Message} message @param {Question | null} question @param {boolean} last @param {string} [request] */
  endAnswer(answer, message, question, last, request) {
    if (message.stopped) {
      const thoughts = [...answer.thoughts.values()];
      const seconds = thoughts.reduce((sum, thought) => sum + (thought.seconds ?? 0), 0);
      const onlyThought = !answer.plainText && thoughts.length > 0 && message.stopped !== "starved";
      const words = message.error || (onlyThought ? `It thought for ${formatSeconds(seconds)} and stopped.` : STOPS[message.stopped] ?? "It stopped.");
      answer.tell(words, !last || ["refused", "filtered"].includes(message.stopped) ? [] : [this.makeContinue("Continue")], Boolean(message.error));
    }
    const acts = [];
    if (question && !question.hasFiles) {
      acts.push(button("quiet", "Retry", () => void this.forkAndAsk(question, question.text), { "aria-label": "Retry: ask this again, in a fork" }));
    }
    answer.drawFoot(message, [...acts, ...this.makeInspect(request)]);
  }

  /** @param {Question} question @param {string} text */
  async forkAndAsk(question, text) {
    const made = await this.makeFork(question);
    if (!made) return;
    toAsk.set(made.id, text);
    this.shell.go(`#/c/${encodeURIComponent(made.id)}`);
  }

  /** @param {Question} question */
  async fork(question) {
    const made = await this.makeFork(question);
    if (!made) return;
    this.shell.drafts.set(made.id, question.text);
    this.shell.go(`#/c/${encodeURIComponent(made.id)}`);
  }

  /** @param {Question} question @returns {Promise<{id: string} | null>} */
  async makeFork(question) {
    try {
      if (question.id === null) throw new Error("The question is not kept yet. Wait for its answer, or stop it.");
      const made = await api.send(`/conversations/${this.id}/fork`, "POST", { before: question.id });
      this.shell.side.touch(made);
      return made;
    } catch (problem) {
      this.complain(problem);
      return null;
    }
  }

  async copyLast() {
    const text = this.answers.findLast((answer) => answer.plainText)?.plainText;
    if (text) this.announcer.say((await copyText(text)) ? "Copied." : "Not copied.");
  }

  // --- the conversation ---

  /** @param {string} text */
  setSystem(text) {
    this.system = text;
    this.header.setInstructed(text !== "");
  }

  /** Ask for the system prompt, and keep it. */
  async instruct() {
    const text = await askForText("Instructions", "The system prompt: it goes before every question of this conversation.", this.system, "Use");
    if (text === null || text === this.system) return;
    const before = this.system;
    this.setSystem(text.trim() ? text : "");
    if (!this.id) return;
    try {
      await api.send(`/conversations/${this.id}`, "PATCH", { system: this.system });
    } catch (problem) {
      this.setSystem(before);
      this.complain(problem);
    }
  }

  /** @param {"md" | "json"} form */
  async export(form) {
    try {
      await exportConversation(this.id, form, (key) => this.shell.thoughts.get(key));
    } catch (problem) {
      this.complain(problem);
    }
  }

  /** @param {string} title */
  setTitle(title) {
    this.header.setTitle(title);
    if (this.element.isConnected) this.shell.setTitle(title);
  }

  async refreshTitle() {
    try {
      this.setTitle((await api.get(`/conversations/${this.id}?limit=1`)).title);
    } catch (problem) {
      this.shell.connection.takes(problem);
    }
  }

  /** @param {string} title */
  async rename(title) {
    this.setTitle(title);
    this.shell.side.rename(this.id, title);
    await this.change({ title });
  }

  /** @param {object} changes */
  async change(changes) {
    if (!this.id) return;
    try {
      await api.send(`/conversations/${this.id}`, "PATCH", changes);
    } catch (problem) {
      this.complain(problem);
    }
  }

  async delete() {
    const sure = await askToConfirm("Delete this conversation?", `“${this.header.text || "Untitled"}” and its messages are deleted for good.`, "Delete");
    if (!sure) return;
    this.stop();
    try {
      await api.send(`/conversations/${this.id}`, "DELETE");
    } catch (problem) {
      this.complain(problem);
      return;
    }
    this.shell.drafts.delete(this.id);
    this.shell.thoughts.forget(this.id);
    this.shell.side.remove(this.id);
    this.shell.go("#/");
  }
}

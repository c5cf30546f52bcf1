"""Check the settings of a request against its model's rule. A contradiction raises, or is adjusted with a notice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects import find_facts
from asides.history.turns import ends_with_assistant, has_open_thoughts, lacks_thinking
from asides.providers.find import find_rule
from asides.providers.provider import ModelRule, Sampled, Target
from asides.values.errors import InvalidThinking, Unsupported
from asides.values.messages import Message, Prompt, Sampling
from asides.values.notices import Notice
from asides.values.parts import Text
from asides.values.thinking import EFFORTS, Effort, Thinking, nearest_effort, turn_off

OnConflict: TypeAlias = Literal["raise", "adjust"]

ANSWER_ROOM = 4096
"""Tokens for the answer beside a thinking budget."""

# The budget in tokens for each effort, to convert one into the other.
BUDGETS: dict[Effort, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
# 400 with these (platform.claude.com whats-new-sonnet-5-5, 2026-11-15).
_NOT_BETWEEN_TOOLS = ("xhigh", "max")

Advised: TypeAlias = tuple[Notice, str]
"""A finding about a setting: the notice of its replacement, and the advice of the error where that is not wanted. "" =
the replacement is not a contradiction.
"""

FREE_CHOICES = (None, "auto", "none")
"""The choices of a tool that demand no call."""
_NO_SAMPLING = Sampling()


def check_request(prompt: Prompt, target: Target, on_conflict: OnConflict, notices: list[Notice]) -> Prompt:
    """Return the prompt in a form that can be sent. Raises InvalidThinking if it contradicts the model's rule."""
    if target.learned and on_conflict == "raise":
        # The caller is responsible for contradictions to the row, but not to a learned fact: those are adjusted.
        rule = find_rule(target.provider, target.family or target.model, foreign=target.foreign)
        _RequestCheck(prompt, msgspec.structs.replace(target, rule=rule, learned=()), "raise", []).run()
    return _RequestCheck(prompt, target, on_conflict, notices).run()


def drop_tools(prompt: Prompt, target: Target, notices: list[Notice]) -> Prompt:
    """Drop the tools that the model does not accept, with a notice."""
    taken = tuple(tool for tool in prompt.tools if tool.native and target.rule.tools == "native")
    if len(taken) == len(prompt.tools):
        return prompt
    notices.append(Notice("tools_dropped", f"{target.provider.name}:{target.model} takes no tools", "tools"))
    prompt = msgspec.structs.replace(prompt, tools=taken)
    if taken or (prompt.tool_choice is None and prompt.parallel_tool_calls is None):
        return prompt
    return msgspec.structs.replace(prompt, tool_choice=None, parallel_tool_calls=None)


class _RequestCheck:
    """The check of one prompt against one model's rule."""

    def __init__(self, prompt: Prompt, target: Target, on_conflict: OnConflict, notices: list[Notice]) -> None:
        self.prompt = prompt
        self.target = target
        self.rule: ModelRule = target.rule
        self.on_conflict = on_conflict
        # A rule that is only assumed, or learned from a refusal, never refuses anything.
        self.adjusts = on_conflict == "adjust" or target.rule.assumed or bool(target.learned)
        self.notices = notices

    @property
    def model_name(self) -> str:
        """The model's name as written by the caller."""
        return f"{self.target.provider.name}:{self.target.model}"

    def run(self) -> Prompt:
        """Return the checked prompt: the same one if nothing changes."""
        if self.prompt.tools and self.rule.tools is not True:
            self.prompt = self._check_tools()
        prompt = self.prompt
        thinking = self._check_amount(prompt.thinking)
        thinking, max_tokens = self._check_budget(thinking)
        on = bool(self.target.thinks(thinking))
        changes: dict[str, Any] = {}
        if max_tokens is not prompt.max_tokens:
            changes["max_tokens"] = max_tokens
        if prompt.system is not None and not prompt.system:
            changes["system"] = None
        if self.rule.prefill != "yes" and ends_with_assistant(prompt.messages):
            thinking, more = self._check_prefill(thinking, on)
            changes |= more
            on = on and thinking.mode != "off"
        if on and thinking.budget is not None and self.rule.begins_with_thinking:
            thinking = self._pause_thinking(thinking)
            on = thinking.mode != "off"
        if on and not thinking.asked and self._must_stop_for_choice(thinking):
            # Thinking was not requested, but the tool was.
            thinking = self._stop_for_choice(thinking)
            on = False
        if prompt.stop or prompt.sampling != _NO_SAMPLING:
            changes |= self._check_sampling(thinking, on)
        if prompt.tool_choice not in FREE_CHOICES and (on or self.rule.forced_tools == "never"):
            changes |= self._check_forced_tool(thinking)
        if prompt.tools and self.rule.tools_while_thinking is not True and thinking.mode != "off":
            thinking = self._drop_thinking_for_tools(thinking)
        streams = self.target.restrictions.stream_only or self.rule.stream_only
        if streams and not prompt.stream and (streams is True or (on and thinking.mode != "off")):
            self.notices.append(Notice("streamed", "this host answers only as a stream", "stream", "false", "true"))
            changes["stream"] = True
        if thinking is not prompt.thinking:
            changes["thinking"] = thinking
        return msgspec.structs.replace(prompt, **changes) if changes else prompt

    def _check_tools(self) -> Prompt:
        """Leave out tools that the model does not take. A first question raises, since its caller wants tools; a
        conversation that began with another model continues without them.
        """
        found: list[Notice] = []
        fitting = drop_tools(self.prompt, self.target, found)
        is_first = not any(message.role == "assistant" for message in self.prompt.messages)
        if found and is_first and self.on_conflict == "raise":
            if self.adjusts:
                return self.prompt  # learned from a refusal: the server decides
            raise Unsupported(
                f"{self.model_name} takes no tools. Leave them out, ask a model that takes tools, or pass "
                "on_conflict='adjust'."
            )
        self.notices += found
        return fitting

    def _report_conflict(
        self, code: str, message: str, *, setting: str, asked: object, sent: object, advice: str
    ) -> None:
        self._report([(Notice(code, message, setting, str(asked), str(sent)), advice)])

    def _check_amount(self, thinking: Thinking) -> Thinking:
        rule = self.rule
        if not thinking.asked:
            return self._continue_thinking(thinking) if rule.default == "off" and "disabled" in rule.forms else thinking
        if thinking.mode == "off":
            # "off" wins over an effort or a budget beside it (requirements, I4).
            thinking = msgspec.structs.replace(thinking, effort=None, budget=None)
            if "disabled" in rule.forms and has_open_thoughts(self.prompt.messages):
                return self._fit_form(self._keep_thinking(thinking))
        if thinking.display is not None:
            thinking = self._check_display(thinking)
        if rule.assumed:
            detail = f"{self.model_name} is not known; the rules of the newest known models were used"
            self.notices.append(Notice("unknown_model", detail, "thinking"))
        if rule.thinking == "unknown":
            self.notices.append(
                Notice("unknown_model", f"the abilities of {self.model_name} are not known; sent as asked", "thinking")
            )
            return self._fit_form(self._fit_effort(thinking))
        if rule.thinking == "never" and thinking.wanted:
            self._report_conflict(
                "thinking_unsupported",
                "this model does not think",
                setting="thinking",
                asked="on",
                sent="nothing",
                advice="choose another model or leave thinking unset",
            )
            return msgspec.structs.replace(thinking, mode=None, effort=None, budget=None)
        if rule.thinking == "never":
            return msgspec.structs.replace(thinking, mode=None)
        if rule.thinking == "always" and thinking.mode == "off" and "between_tools" not in rule.forms:
            least: Effort | None = rule.efforts[0] if rule.efforts else None
            self._report_conflict(
                "thinking_cannot_stop",
                "this model cannot stop thinking",
                setting="thinking",
                asked="off",
                sent=least or "nothing",
                advice=f"ask for {least or 'another model'}",
            )
            return msgspec.structs.replace(thinking, mode=None, effort=least)
        return self._fit_form(self._fit_effort(thinking))

    def _continue_thinking(self, thinking: Thinking) -> Thinking:
        """Keep thinking on in a turn that began with it, where the request does not say and the default is off: its
        thoughts would be refused. Not beside settings that thinking excludes.
        """
        prompt, rule = self.prompt, self.rule
        if prompt.stop or prompt.sampling != _NO_SAMPLING or prompt.tool_choice not in FREE_CHOICES:
            return thinking
        adaptive = "adaptive" in rule.forms
        has_room = prompt.max_tokens is None or prompt.max_tokens > ANSWER_ROOM
        if not has_open_thoughts(prompt.messages) or not (
            adaptive or (has_room and not lacks_thinking(prompt.messages))
        ):
            return thinking
        detail = "the turn under way has thoughts, which have to go back with thinking on"
        self.notices.append(Notice("thinking_kept", detail, "thinking", "nothing", "auto" if adaptive else "on"))
        if adaptive:
            return msgspec.structs.replace(thinking, mode="auto")
        least, _ = rule.budget or (1024, None)
        return msgspec.structs.replace(thinking, budget=least)

    def _keep_thinking(self, thinking: Thinking) -> Thinking:
        """Keep thinking on until a turn that calls tools is over. With thinking off its thoughts would be refused
        (thinking_present_while_disabled, tailcallhq/forgecode#1853, 2025-11-07).
        """
        sent = "auto" if "adaptive" in self.rule.forms else "on"
        self._report_conflict(
            "thinking_kept",
            "thinking cannot be turned off in the middle of a turn that calls tools",
            setting="thinking",
            asked="off",
            sent=sent,
            advice="turn it off with the next question",
        )
        return msgspec.structs.replace(thinking, mode=sent)

    def _check_display(self, thinking: Thinking) -> Thinking:
        takes = self.rule.displays
        if not takes or thinking.display in takes:
            return thinking
        self._report_conflict(
            "display_adjusted",
            f"this model shows its thinking as {', '.join(takes)}, not as {thinking.display}",
            setting="thinking",
            asked=thinking.display,
            sent=takes[0],
            advice=f"use display={takes[0]!r}",
        )
        return msgspec.structs.replace(thinking, display=takes[0])

    def _fit_form(self, thinking: Thinking) -> Thinking:
        if not self.rule.forms:
            return thinking
        thinking, found = fit_thinking(thinking, self.rule, self.prompt.max_tokens)
        self._report(found)
        return thinking

    def _fit_effort(self, thinking: Thinking) -> Thinking:
        asked, takes = thinking.effort, self.rule.efforts
        if asked is None or takes is None or asked in takes:
            return thinking
        if not takes and self.rule.forms and self.rule.budget is not None:
            return thinking  # it becomes a budget
        if not takes:
            self.notices.append(Notice("effort_mapped", "this model has no efforts", "thinking", asked, "on"))
            return msgspec.structs.replace(thinking, effort=None, mode="on")
        sent = dict(self.rule.effort_map).get(asked)
        if sent not in takes:
            sent = None
        if any(name == "efforts" for fact in self.target.learned for name, _ in fact.changes):
            # The server has listed them: the nearest one that is not higher.
            takes = takes[: sum(EFFORTS.index(effort) <= EFFORTS.index(asked) for effort in takes)] or takes[:1]
            sent = takes[-1]
        if sent is None and asked == "minimal" and "low" not in takes and self.rule.thinking == "optional":
            # The lowest effort is far above the one asked for; not thinking is nearer (requirements, I8).
            self.notices.append(Notice("effort_mapped", "the nearest is thinking off", "thinking", asked, "off"))
            return msgspec.structs.replace(thinking, effort=None, mode="off")
        sent = sent or nearest_effort(asked, takes)
        self.notices.append(
            Notice("effort_mapped", f"the nearest effort of {self.model_name}", "thinking", asked, sent)
        )
        return msgspec.structs.replace(thinking, effort=sent)

    def _check_budget(self, thinking: Thinking) -> tuple[Thinking, int | None]:
        budget, limit = thinking.budget, self.prompt.max_tokens
        if budget is None:
            return thinking, self._choose_limit(limit)
        least, most = self.rule.budget or (1, None)
        if budget < least or (most is not None and budget > most):
            legal = least if budget < least or most is None else most
            self._report_conflict(
                "budget_adjusted",
                f"a thinking budget of {budget} tokens is outside {least} to {most or 'any'}",
                setting="thinking",
                asked=budget,
                sent=legal,
                advice=f"ask for {legal}",
            )
            budget = legal
        if limit is None:
            is_as_read = self.prompt.is_from(self.target.dialect)
            if not is_as_read and (self.rule.budget is not None or self.target.facts.budget_in is not None):
                limit = budget + ANSWER_ROOM
                if self.rule.max_output is not None and budget < self.rule.max_output:
                    limit = min(limit, self.rule.max_output)
                self.notices.append(
                    Notice("max_tokens_chosen", "room for the budget and an answer", "max_tokens", None, str(limit))
                )
        elif budget >= limit and not find_facts(self.target.dialect).budget_below_limit:
            detail = f"a thinking budget of {budget} tokens may leave nothing of max_tokens={limit} for the answer"
            self.notices.append(Notice("budget_fills_limit", detail, "thinking", str(budget), str(budget)))
        elif budget >= limit and not (self.prompt.tools and self.rule.interleaves != "never"):
            room = max(least, limit - ANSWER_ROOM, limit // 2)
            fits = room if room < limit else None
            self._report_conflict(
                "budget_adjusted",
                f"a thinking budget of {budget} tokens leaves nothing of max_tokens={limit} for the answer",
                setting="thinking",
                asked=budget,
                sent=fits or budget,
                advice="raise max_tokens or lower the budget",
            )
            if fits is None:
                limit = budget + ANSWER_ROOM
                self.notices.append(
                    Notice(
                        "max_tokens_chosen",
                        "room for the budget and an answer",
                        "max_tokens",
                        str(self.prompt.max_tokens),
                        str(limit),
                    )
                )
            else:
                budget = fits
        return msgspec.structs.replace(thinking, budget=budget), limit

    def _choose_limit(self, limit: int | None) -> int | None:
        chosen = self.rule.default_max_tokens
        if limit is not None or chosen is None:
            return limit
        self.notices.append(Notice("max_tokens_chosen", "this model needs a limit", "max_tokens", None, str(chosen)))
        return chosen

    def _check_sampling(self, thinking: Thinking, on: bool) -> dict[str, Any]:
        found: list[Advised] = []
        changes: dict[str, Any] = {}
        if self.prompt.sampling.to_dict():
            sampling, found = fit_sampling(self.prompt.sampling, self.rule, thinks=on)
            changes = {"sampling": sampling} if found else {}
        if self.prompt.stop and ("stop" in self.rule.refuses or (on and "stop" in self.rule.forbids)):
            when = "by this model" if "stop" in self.rule.refuses else "while this model thinks"
            message = f"stop is not accepted {when}"
            found.append((Notice("setting_dropped", message, "stop", "set", "nothing"), "leave stop out"))
            changes["stop"] = ()
        if found and not thinking.wanted:
            # The model thinks by itself, so leaving thinking out would not help.
            way_out = " or turn thinking off" if self.rule.thinking == "optional" else ""
            found = [
                (notice, f"leave {notice.setting} out{way_out}" if advice.endswith("thinking out") else advice)
                for notice, advice in found
            ]
        self._report(found)
        return changes

    def _report(self, found: Sequence[Advised]) -> None:
        for notice, advice in found:
            if advice and not self.adjusts:
                text = f"{self.model_name}: {notice.detail}; {advice}, or pass on_conflict='adjust'."
                raise InvalidThinking(text, setting=notice.setting)
            self.notices.append(notice)

    def _check_prefill(self, thinking: Thinking, on: bool) -> tuple[Thinking, dict[str, Any]]:
        """Handle a conversation that ends with an assistant message, for a model that does not continue one."""
        if self.rule.prefill == "never":
            self._report_conflict(
                "prefill_adjusted",
                "this model does not continue an assistant's message",
                setting="messages",
                asked="to continue",
                sent="a request to continue",
                advice="end the conversation with a user's message",
            )
            return thinking, {"messages": (*self.prompt.messages, Message("user", (Text("Continue."),)))}
        if not on:
            return thinking, {}
        self._report_conflict(
            "thinking_dropped",
            "this model does not continue an assistant's message while it thinks",
            setting="thinking",
            asked="on",
            sent="off",
            advice="end the conversation with a user's message, or turn thinking off",
        )
        return turn_off(thinking), {}

    def _pause_thinking(self, thinking: Thinking) -> Thinking:
        """Turn off the thinking budget for a turn that another model began with tool calls. It has no thinking to send
        back, and with a budget the provider would refuse it.
        """
        if not lacks_thinking(self.prompt.messages):
            return thinking
        adaptive = "adaptive" in self.rule.forms
        detail = "the current turn has tool calls without their thinking, which a budget requires"
        sent = "auto" if adaptive else "off"
        self.notices.append(Notice("thinking_paused", detail, "thinking", str(thinking.budget), sent))
        return msgspec.structs.replace(thinking, mode=sent, effort=None, budget=None)

    def _drop_thinking_for_tools(self, thinking: Thinking) -> Thinking:
        stops = self.rule.tools_while_thinking == "off"
        sent = msgspec.structs.replace(thinking, mode="off" if stops else None, effort=None, budget=None)
        message = "this model takes no tools while it thinks at this endpoint"
        if thinking.wanted:
            self._report_conflict(
                "thinking_dropped",
                message,
                setting="thinking",
                asked=thinking.effort or "on",
                sent=sent.mode or "nothing",
                advice="leave thinking or the tools out, or use another endpoint",
            )
        elif stops:
            self.notices.append(Notice("thinking_dropped", message, "thinking", None, "off"))
        else:
            return thinking
        return sent

    def _must_stop_for_choice(self, thinking: Thinking) -> bool:
        """Whether a forced tool needs thinking turned off, and this model can turn it off."""
        forced = self.rule.forced_tools
        if self.prompt.tool_choice in FREE_CHOICES or not self.prompt.tools or forced == "never":
            return False
        if self._takes_choice(thinking) or self.rule.thinking != "optional":
            return False
        return not has_open_thoughts(self.prompt.messages)

    def _stop_for_choice(self, thinking: Thinking) -> Thinking:
        detail = "this model takes a forced tool call only with thinking off, and thinking was not asked for"
        self.notices.append(Notice("thinking_dropped", detail, "thinking", None, "off"))
        return self._fit_form(turn_off(thinking))

    def _takes_choice(self, thinking: Thinking) -> bool:
        return takes_choice(self.prompt.tool_choice, thinking, self.rule)

    def _check_forced_tool(self, thinking: Thinking) -> dict[str, Any]:
        choice = self.prompt.tool_choice
        forced = self.rule.forced_tools
        if self._takes_choice(thinking):
            return {}
        sent = "auto" if forced != "required" else "required"
        when = "" if forced == "never" else " while it thinks"
        self._report_conflict(
            "tool_choice_adjusted",
            f"this model cannot be forced to call {'a tool' if sent == 'auto' else 'a certain tool'}{when}",
            setting="tool_choice",
            asked=choice,
            sent=sent,
            advice=f"use tool_choice={sent!r} or turn thinking off",
        )
        return {"tool_choice": sent}


def takes_choice(choice: str | None, thinking: Thinking, rule: ModelRule) -> bool:
    """Whether a model accepts this tool choice while it thinks."""
    if choice in FREE_CHOICES or rule.forced_tools is True or rule.forced_tools == choice:
        return thinking.budget is None or choice in FREE_CHOICES or rule.forced_tools_with_budget
    return False


# --- settings in a form that the model takes --------------------------------------------------------------------------


def fit_thinking(thinking: Thinking, rule: ModelRule, limit: int | None) -> tuple[Thinking, list[Advised]]:
    """Express the amount of thinking in a form that the model accepts: a budget, or an effort."""
    found: list[Advised] = []
    forms = rule.forms
    if thinking.mode == "off" and "between_tools" in forms and "disabled" not in forms:
        detail = "for this model, off means thinking only between tool calls"
        found.append((Notice("form_adjusted", detail, "thinking", "off", "between_tools"), ""))
        return msgspec.structs.replace(thinking, mode="between_tools"), found
    if not forms or not thinking.wanted:
        return thinking, found
    if thinking.mode == "between_tools" and "between_tools" not in forms:
        message = "this model cannot be asked to think only between calls of tools"
        advice = "use thinking='auto'"
        found.append((Notice("form_adjusted", message, "thinking", "between_tools", "auto"), advice))
        thinking = msgspec.structs.replace(thinking, mode="auto")
    if thinking.mode == "between_tools" and thinking.effort in _NOT_BETWEEN_TOOLS:
        message = f"the effort {thinking.effort} is not accepted while this model thinks only between calls of tools"
        found.append((Notice("effort_mapped", message, "thinking", thinking.effort, "high"), "ask for high"))
        thinking = msgspec.structs.replace(thinking, effort="high")
    if thinking.budget is not None and "enabled" not in forms:
        nearest = _find_effort(thinking.budget, rule.efforts or EFFORTS)
        sent = thinking.effort or nearest
        message = "this model takes an effort, not a budget"
        notice = Notice("budget_mapped", message, "thinking", str(thinking.budget), sent)
        found.append((notice, f"use thinking={nearest!r}"))
        return msgspec.structs.replace(thinking, budget=None, effort=sent), found
    if thinking.budget is None and "adaptive" not in forms and rule.budget is not None:
        asked = thinking.effort
        chosen = _fit_budget(BUDGETS[asked or "medium"], rule, limit)
        code = "budget_chosen" if asked is None else "effort_mapped"
        found.append((Notice(code, "this model thinks with a budget", "thinking", asked or "on", str(chosen)), ""))
        effort = asked if asked in (rule.efforts or ()) else None
        return msgspec.structs.replace(thinking, mode=None, effort=effort, budget=chosen), found
    return thinking, found


def _fit_budget(budget: int, rule: ModelRule, limit: int | None) -> int:
    """Limit a budget so that it leaves room for an answer, but not below the model's minimum."""
    least, _ = rule.budget or (1, None)
    most = budget
    for ceiling in (limit, rule.max_output):
        if ceiling is not None:
            most = min(most, ceiling - min(ANSWER_ROOM, ceiling // 2))
    return max(least, most)


def _find_effort(budget: int, takes: Sequence[Effort]) -> Effort:
    enough: list[Effort] = [effort for effort in takes if BUDGETS[effort] >= budget]
    return enough[0] if enough else takes[-1]


def fit_sampling(sampling: Sampling, rule: ModelRule, *, thinks: bool) -> tuple[Sampling, list[Advised]]:
    """The sampling settings that the model accepts, and a finding for each change."""
    found: list[Advised] = []
    accepted = sampling.to_dict()
    for name in _list_refused(rule, thinks=thinks):
        value = accepted.get(name)
        if value is None or (name == "temperature" and thinks and value == rule.temperature):
            continue
        del accepted[name]
        if name in rule.refuses:
            message, advice = f"{name} is not accepted by this model", f"leave {name} out"
        else:
            message, advice = f"{name} is not accepted while this model thinks", f"leave {name} or thinking out"
        found.append((Notice("setting_dropped", message, name, "set", "nothing"), advice))
    for name, only in () if thinks else rule.off_sampling:
        if accepted.get(name) not in (None, only):
            del accepted[name]
            message = f"{name} is {only:g} while this model does not think"
            found.append((Notice("setting_dropped", message, name, "set", "nothing"), f"leave {name} out"))
    top_p = sampling.top_p
    if thinks and rule.top_p is not None and top_p is not None and "top_p" in accepted:
        least, most = rule.top_p
        if not least <= top_p <= most:
            accepted["top_p"] = sent = min(max(top_p, least), most)
            message = f"top_p is {least:g} to {most:g} while this model thinks"
            advice = "change it or leave it out"
            found.append((Notice("setting_adjusted", message, "top_p", f"{top_p:g}", f"{sent:g}"), advice))
    if rule.temperature_or_top_p and "temperature" in accepted and "top_p" in accepted:
        del accepted["top_p"]
        message = "this model takes temperature or top_p, not both"
        found.append((Notice("setting_dropped", message, "top_p", "set", "nothing"), ""))
    return Sampling(**accepted), found


def _list_refused(rule: ModelRule, *, thinks: bool) -> list[Sampled]:
    names = dict.fromkeys((*rule.refuses, *(rule.forbids if thinks else ())))
    return [name for name in names if name != "stop"]

"""`asides ask --each FILE`: every question of a file, several in parallel, one JSON line for each answer.

A stopped run resumes: questions that are answered in the output are not asked again.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from typing import Any, cast

from asides.batch_rows import FillPrompt, Question
from asides.cli.answer_rows import AnswerFile
from asides.cli.exit_codes import Exit
from asides.cli.question_rows import count_questions, open_questions
from asides.cli.render import (
    PRINTED_WITH_SETTINGS,
    describe_error,
    describe_notice,
)
from asides.cli.request import CallConfig, read_call_config
from asides.cli.terminal import LiveLine, Terminal, describe_figures
from asides.client import Client
from asides.flows.build_call import CallBuilder
from asides.flows.call import Call
from asides.flows.many import Answer, BuildCall, OpenQuestions, check_call
from asides.flows.reply_fields import encode_answer, encode_failed, find_problem, is_answered
from asides.options import Options
from asides.values.errors import AsidesError, ConfigError
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.usage import Cost, Timing, Usage, join_timings, sum_costs

_USUAL_CONCURRENCY = 8


def run_each(arguments: Namespace, terminal: Terminal) -> int:
    """Ask every question and return the exit code. Ctrl-C leaves whole rows, and the same command resumes."""
    _check_arguments(arguments)
    config = read_call_config(arguments, terminal)
    batch = OpenQuestions(_USUAL_CONCURRENCY if arguments.concurrency is None else arguments.concurrency)
    with ExitStack() as stack:
        fill_prompt = getattr(arguments, "fill_prompt", None)
        total, repeated = count_questions(arguments.each, fill_prompt)
        client = stack.enter_context(Client(settings=config.settings))
        answers = AnswerFile(arguments.output, arguments.each, terminal, repeated)
        each = _Each(config, terminal, answers, total, batch, fill_prompt)
        # Raises what is wrong with all questions, before the file of the answers is touched.
        pairs = client.answer(partial(each.prepare, path=arguments.each), batch)
        stack.enter_context(answers)
        stack.callback(pairs.close)
        live = LiveLine(terminal, each.status_line)
        stack.callback(live.stop)
        live.start()
        try:
            for index, outcome in pairs:
                each.take(index, outcome)
                if batch.error is not None:
                    break
        except KeyboardInterrupt:
            pairs.close()
            live.stop()
            terminal.print_error(f"stopped; {each.summary()}{answers.advice}")
            return Exit.INTERRUPTED
        live.stop()
    if batch.error is not None:
        if each.has_answers:
            terminal.print_note(f"{each.summary()}{answers.advice}")
        raise batch.error
    terminal.print_note(f"{each.summary()}{answers.advice if each.failed else ''}")
    if arguments.usage:
        terminal.print_info(each.describe_usage())
    return Exit.SOME_FAILED if each.failed else Exit.DONE


def _check_arguments(arguments: Namespace) -> None:
    for given, name in (
        (arguments.prompt, "the words of a question"),
        (arguments.file, "-f"),
        (arguments.tools, "--tools"),
        (arguments.mcp, "--mcp"),
        (arguments.confirm, "--confirm"),
        (arguments.max_turns is not None, "--max-turns"),
        (arguments.conversation is not None, "--conversation"),
        (arguments.continue_last, "--continue"),
    ):
        if given:
            raise ConfigError(f"--each takes its questions from its file, without {name}. Leave one out.")


class _Each:
    """One run: the questions that are being asked, the counts, and the rows that are written."""

    def __init__(
        self,
        config: CallConfig,
        terminal: Terminal,
        answers: AnswerFile,
        total: int | None,
        batch: OpenQuestions,
        fill_prompt: FillPrompt | None,
    ) -> None:
        """`fill_prompt` puts a question into the prompt of a template (-T)."""
        self._batch = batch
        self._config = config
        self._fill_prompt = fill_prompt
        self._terminal = terminal
        self._answers = answers
        self._total = total
        self._began = time.monotonic()
        self._asked: dict[int, tuple[Question, CallConfig]] = {}
        self._waiting: dict[str, list[Question]] = {}
        """Questions that equal one that is being asked, by their fingerprint."""
        self._reported: set[Notice] = set()
        self._usage: Usage | None = None
        self._timing: Timing | None = None
        self._cost: Cost | None = Cost(Decimal(), thinking=Decimal())
        self._skipped = 0
        self._taken = 0
        self._answered = 0
        self.failed = 0
        self._first_error: AsidesError | None = None

    def prepare(self, builder: CallBuilder, *, path: str) -> Iterator[BuildCall]:
        """What builds the call of each question that has no answer yet. Raises errors that concern every prompt."""
        check_call(builder, self._config.models, self._config.options)
        return self._prepare_each(builder, path)

    def _prepare_each(self, builder: CallBuilder, path: str) -> Iterator[BuildCall]:
        with open_questions(path, self._fill_prompt) as questions:
            for question in questions:
                if self._answers.has_answer(question):
                    self._skipped += 1
                    self._batch.pace.has_answers = True
                    continue
                if (fields := self._answers.find_fields(question)) is not None:
                    self._write(question, fields)
                    continue
                if self._answers.is_repeated(question):
                    if question.fingerprint in self._waiting:
                        self._waiting[question.fingerprint].append(question)
                        continue
                    self._waiting[question.fingerprint] = []
                taken, self._taken = self._taken, self._taken + 1
                self._asked[taken] = question, self._config
                yield partial(self._build, builder, question, taken)

    def _build(self, builder: CallBuilder, question: Question, taken: int) -> Call:
        config = self._config
        if question.model is not None:
            self._batch.note_own_model(taken)
        if question.model is not None and not question.is_vendor_form:
            # `--base-url` and `--api-key` hold for the provider that they were given for.
            config = config.with_model(question.model)
            self._asked[taken] = question, config
        options = cast("Options", {**config.options, **question.options})
        return builder.build(config.models, question.prompt, options, stream=False)

    def take(self, index: int, outcome: Answer) -> None:
        """Write the row of one question, and of those that equal it."""
        question, config = self._asked.pop(index)
        if isinstance(outcome, Reply):
            fields = encode_answer(outcome, config.visibility)
            self._usage = outcome.usage if self._usage is None else self._usage + outcome.usage
            self._timing = join_timings((self._timing, outcome.timing))
            self._cost = sum_costs((self._cost, outcome.cost))
            self._first_error = self._first_error or find_problem(outcome)
            self._report_warnings(outcome)
        else:
            fields = encode_failed(outcome)
            self._first_error = self._first_error or outcome
        for equal in (question, *self._waiting.pop(question.fingerprint, ())):
            self._write(equal, fields)

    def _write(self, question: Question, fields: dict[str, Any]) -> None:
        self._answers.write(question, fields)
        if is_answered(fields):
            self._answered += 1
        else:
            self.failed += 1

    def _report_warnings(self, reply: Reply) -> None:
        for notice in reply.warnings:
            if notice not in self._reported and notice.code not in (*PRINTED_WITH_SETTINGS, "max_tokens_chosen"):
                self._reported.add(notice)
                self._terminal.print_note(f"warning: {describe_notice(notice)}")

    # --- figures ------------------------------------------------------------------------------------------------------

    def status_line(self) -> str:
        """The text of the live line."""
        done = self._skipped + self._answered + self.failed
        of_all = f"/{self._total}" if self._total is not None else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{done}{of_all} questions{failed}, {len(self._asked)} open, {int(time.monotonic() - self._began)} s"

    @property
    def has_answers(self) -> bool:
        """Whether this run or an earlier one has an answer."""
        return bool(self._answered or self._skipped)

    def summary(self) -> str:
        """How it ended, in one line."""
        parts = [f"{self._answered} answered"]
        if self._skipped:
            parts.append(f"{self._skipped} answered before")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self._total is not None and (left := self._total - self._skipped - self._answered - self.failed) > 0:
            parts.append(f"{left} not asked")
        first = self._first_error
        return ", ".join(parts) + ("." if first is None else f". The first error: {describe_error(first)}")

    def describe_usage(self) -> str:
        """The line of `--usage`: the figures of all replies of this run together."""
        if self._usage is None:
            return describe_figures(Usage(), None, None)
        return describe_figures(self._usage, self._timing, self._cost)

"""Starting, stopping and asking again, for every screen that stands for a run: forms, prices, and the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memx.engine.store.reader import RunRow, Store, Where
from memx.errors import MemxError, UsageError
from memx.tui.screens.base import BaseScreen

if TYPE_CHECKING:
    from memx.engine.estimate import Estimate
    from memx.tui.screens.form import Entry, Values

#: Names of the form, and the option of ``memx run`` that each is.
_RUN_OPTIONS = {
    "dataset": "--dataset", "source": "--source", "adapter": "--adapter", "mode": "--retrieval-mode",
    "limit": "--limit", "top_k": "--top-k", "judge_model": "--judge-model", "answer_model": "--answer-model",
    "base_url": "--base-url",
}  # fmt: skip
_NUMBERS = ("limit", "top_k", "max_calls")


class Working(BaseScreen):
    """A screen from which a run can be stopped, gone on with, judged again and probed."""

    def chosen_run(self) -> RunRow | None:
        """The run that is meant."""
        raise NotImplementedError

    def _run(self) -> RunRow | None:
        run = self.chosen_run()
        if run is None:
            self.notify("there is no run here", timeout=3)
        return run

    def action_stop(self) -> None:
        run, app = self._run(), self.debug_app
        job = next((job for job in app.jobs if run is None or job.pid == run.pid), None) or getattr(self, "job", None)
        if job is not None and job.code is None:
            job.stop()
            self.notify("told to stop; what is finished is kept, R goes on with it", timeout=4)
        elif run is not None and run.state != "running":
            self.notify("it is not running", timeout=3)
        elif run is not None:
            run_id = run.run_id
            self.notify("told to stop; what is finished is kept, R goes on with it", timeout=4)
            self.run_worker(lambda: self._kill(run_id), thread=True, group="kill", exit_on_error=False)

    def _kill(self, run_id: str) -> None:
        from memx.engine.background import kill_run

        try:
            kill_run(self.debug_app.store.directory, run_id)
        except MemxError as error:
            self.app.call_from_thread(self.debug_app.show_error, error)

    def action_resume(self) -> None:
        run = self._run()
        if run is None:
            return
        if run.state == "running":
            self.notify("it is running; w watches it, x stops it", timeout=3)
        elif run.state == "finished":
            self.notify("it is finished; J judges it again, n starts another", timeout=3)
        else:
            self.debug_app.start_job(["run", "--resume", run.run_id], watch=True)

    def action_rejudge(self) -> None:
        run = self._run()
        if run is not None:
            rejudge(self, run)

    def action_probe(self) -> None:
        run = self._run()
        if run is not None:
            probe(self, run, None)


def start_run(screen: BaseScreen, like: RunRow | None) -> None:
    """Ask what to run, then run it. The form begins as it was last left, or with the settings of a run."""
    from memx.adapters.registry import names
    from memx.tui.screens.form import Entry, FormScreen

    def begin(name: str, otherwise: str = "") -> str:
        value = like.settings.get(name) if like else None
        return otherwise if value in (None, "") else str(value)

    mode = (like.settings.get("adapter_options") or {}).get("mode", "") if like else ""
    entries: tuple[Entry, ...] = (
        Entry("dataset", "dataset", begin("dataset", "demo"), "a name, or module.path:Class", _known(names, "dataset")),
        Entry("source", "source", begin("source"), "its file, where the dataset does not ship with memx"),
        Entry("adapter", "memory system", begin("adapter", "local"), "a name, or module.path:Class",
              _known(names, "adapter")),
        Entry("mode", "retrieval mode", str(mode), "of the memory system; empty for its own"),
        Entry("limit", "limit", begin("limit"), "ask exactly so many questions; empty for all"),
        Entry("top_k", "top k", begin("top_k", "10"), "how many facts the candidate may see"),
        Entry("judge_model", "judge model", begin("judge_model", "offline"), "offline asks no model", ("offline",)),
        Entry("answer_model", "answer model", begin("answer_model", "none"),
              "none judges what was retrieved", ("none", "extractive")),
        Entry("base_url", "base url", "", "of an OpenAI-compatible endpoint; empty for the usual one"),
        Entry("more", "more options", "", "any other option of memx run, as on the command line"),
    )  # fmt: skip

    app = screen.debug_app
    if app.kept_form:
        entries = tuple(replace(entry, value=app.kept_form.get(entry.name, "")) for entry in entries)

    def filled(values: Values | None) -> None:
        if values is not None:
            app.kept_form = values
            app.start_job(run_arguments(values), watch=True)

    app.push_screen(FormScreen("start a run", entries, lambda v: _shown(run_arguments(v))), filled)


def _known(names: Callable[[str], dict[str, str]], kind: str) -> tuple[str, ...]:
    return tuple(sorted(names(kind)))


def run_arguments(values: Values) -> list[str]:
    """The command of a filled form.

    Raises:
        UsageError: a number is none, or the quotes of the other options do not pair.
    """
    arguments = ["run"]
    for name, option in _RUN_OPTIONS.items():
        value = values.get(name, "").strip()
        if not value:
            continue
        if name in _NUMBERS and not value.isdecimal():
            raise UsageError(f"{option} is a number, not '{value}'")
        arguments += [option, value]
    import shlex

    try:
        return arguments + shlex.split(values.get("more", ""))
    except ValueError:
        raise UsageError("more options: a quote is not closed") from None


def rejudge(screen: BaseScreen, run: RunRow) -> None:
    """Ask for a judge, say what it costs, then judge the stored answers again."""
    from memx.tui.screens.form import Entry

    entries = (
        Entry("judge_model", "judge model", "offline", "offline asks no model", ("offline", run.judge)),
        Entry("votes", "votes", "1", "ask a model so many times, an odd number; the majority decides"),
        Entry("base_url", "base url", "", "of an OpenAI-compatible endpoint; empty for the usual one"),
        Entry("max_calls", "max calls", "", "stop asking after so many; empty for no cap"),
    )

    def arguments(values: Values) -> list[str]:
        if not values["judge_model"]:
            raise UsageError("a judge is needed", "offline asks no model.")
        votes = _number(values, "votes") or "1"
        options = ["rejudge", run.run_id, "--judge-model", values["judge_model"], "--votes", votes]
        return options + _optional(values, "base_url") + _optional(values, "max_calls")

    def cost(store: Store, values: Values) -> Estimate:
        from memx.engine.estimate import rejudge_estimate
        from memx.engine.settings import RunSettings

        settings = RunSettings(judge_model=values["judge_model"], votes=int(values["votes"] or "1"))
        return rejudge_estimate(store, run, settings)

    answers = screen.attempt(screen.debug_app.store.count, run.run_id, Where("candidate IS NOT NULL")) or 0
    title = f"judge the {answers:,} answers of {run.run_id} again; it becomes a run of its own"
    _ask_and_start(screen, title, entries, arguments, cost)


def probe(screen: BaseScreen, run: RunRow, question_id: str | None) -> None:
    """Ask which models, say what it costs, then ask the failed question (or all of the run) again, changed."""
    settings = run.settings
    from memx.tui.screens.form import Entry

    entries: Sequence[Entry] = (
        Entry("answer_model", "answer model", str(settings.get("answer_model") or "none"),
              "who answers from the changed context", ("none", "extractive")),
        Entry("judge_model", "judge model", str(settings.get("judge_model") or "offline"), "who judges", ("offline",)),
        Entry("other_judge", "other judge", "", "judges the stored answer as well; empty for none", ("offline",)),
        Entry("base_url", "base url", "", "of an OpenAI-compatible endpoint; empty for the usual one"),
        Entry("max_calls", "max calls", "", "stop asking after so many; empty for no cap"),
    )  # fmt: skip

    def arguments(values: Values) -> list[str]:
        options = ["probe", run.run_id, "--yes"] + (["--question", question_id] if question_id else [])
        for name in ("answer_model", "judge_model", "other_judge", "base_url", "max_calls"):
            options += _optional(values, name)
        return options

    def cost(store: Store, values: Values) -> Estimate:
        from memx.engine.estimate import probe_estimate
        from memx.engine.probing import planned
        from memx.engine.settings import RunSettings

        plans = planned(store, run.run_id, question_id, other_judge=bool(values["other_judge"]))
        texts = [(p.trace.question, p.trace.candidate) for p in plans]
        chars = sum(len(q.text) + len(q.gold) + len(c.text if c else "") for q, c in texts)
        models = RunSettings(
            answer_model=values["answer_model"] or "none", judge_model=values["judge_model"] or "offline"
        )
        probes = [one for plan in plans for one in plan.probes]
        return probe_estimate(probes, chars // (4 * max(1, len(plans))), models, values["other_judge"] or None)

    title = f"probe {question_id}" if question_id else f"probe every FAIL of {run.run_id}"
    _ask_and_start(screen, title, entries, arguments, cost)


def _ask_and_start(
    screen: BaseScreen,
    title: str,
    entries: Sequence[Entry],
    arguments: Callable[[Values], list[str]],
    cost: Callable[[Store, Values], Estimate],
) -> None:
    """A form, then the price, then a yes, then the command."""
    from memx.tui.screens.form import FormScreen
    from memx.tui.screens.pick import Choice, PickScreen

    app = screen.debug_app

    def confirmed(answer: str | None, values: Values) -> None:
        if answer == "yes":
            app.start_job(arguments(values), watch=True)

    def priced(estimate: Estimate, values: Values) -> None:
        if screen.whole:
            words = (estimate.words(), _shown(arguments(values)))
            yes = Choice("y", "start it", "yes")
            app.push_screen(PickScreen(title, (yes,), words), lambda answer: confirmed(answer, values))

    def look(values: Values) -> None:
        try:
            estimate = cost(app.search_store, values)
        except MemxError as error:
            app.call_from_thread(app.show_error, error)
            return
        app.call_from_thread(priced, estimate, values)

    def filled(values: Values | None) -> None:
        if values is not None:
            screen.run_worker(lambda: look(values), thread=True, group="price", exit_on_error=False)

    app.push_screen(FormScreen(title, entries, lambda values: _shown(arguments(values))), filled)


def _number(values: Values, name: str) -> str:
    value = values.get(name, "")
    if value and not value.isdecimal():
        raise UsageError(f"--{name.replace('_', '-')} is a number, not '{value}'")
    return value


def _optional(values: Values, name: str) -> list[str]:
    value = _number(values, name) if name in _NUMBERS else values.get(name, "")
    return [f"--{name.replace('_', '-')}", value] if value else []


def _shown(arguments: Sequence[str]) -> str:
    import shlex

    return f"memx {shlex.join(arguments)}"

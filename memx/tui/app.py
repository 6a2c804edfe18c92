"""The terminal UI: start-up, theme, the way from screen to screen, and errors."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from memx.engine.store.marks import Mark, Marks, Triage
from memx.engine.store.reader import RunRow, Store, Where
from memx.engine.store.schema import FILE_NAME, open_for_writing
from memx.errors import MemxError
from memx.tui.config import Config, read_config
from memx.tui.jobs import QUIET_CODES, Job, Pace
from memx.tui.screens.base import BaseScreen
from memx.tui.screens.runs import RunsScreen

if TYPE_CHECKING:
    from textual.command import Provider

    from memx.engine.store.search import RunSearch
    from memx.tui.listing import Listing

#: Seconds between looks whether another process wrote to the store.
_WATCH_S = 1.0
#: Seconds that a stopped command is given to write down what it finished, before the UI closes.
_STOP_S = 15.0


def _actions() -> type[Provider]:
    from memx.tui.palette import Actions

    return Actions


class DebugApp(App[int]):
    """The app over one open store.

    Args:
        store: read by the screens.
        search_store: the same store opened a second time, read by workers.
        opened: the run to open at once, and the question in it.
        config: theme and moved keys.
    """

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "memx"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {*App.COMMANDS, _actions}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "suspend", show=False),
    ]

    def __init__(
        self,
        store: Store,
        search_store: Store,
        opened: tuple[RunRow, str | None] | None = None,
        config: Config | None = None,
    ) -> None:
        super().__init__()
        self.store = store
        self.search_store = search_store
        self._opened = opened
        self._run_search: RunSearch | None = None
        self._version = store.data_version()
        self._stale: set[Screen[None]] = set()
        self.marks = Marks(store)
        self.last_mark: Mark | None = None
        self.pace = Pace()
        self.jobs: list[Job] = []
        self.kept_form: Mapping[str, str] = {}
        self._told: set[Job] = set()
        self._triage: dict[tuple[str, str], dict[str, Triage]] = {}
        config = config or Config()
        if config.theme:
            self.theme = config.theme
        self.set_keymap(config.keymap)

    def get_default_screen(self) -> Screen[None]:
        return RunsScreen()

    def on_mount(self) -> None:
        if self._opened is not None:
            run, question_id = self._opened
            listing = self.open_run(run)
            if question_id is not None:
                listing.reload()
                self._push_question(listing, listing.index_of(question_id), question_id)
        # A polite kill is an end like any other: the terminal is put right first.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit, 130)
        # After ctrl+z and fg the terminal is empty, and Textual by itself paints only what changes from then on.
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        self.set_interval(_WATCH_S, self.watch_store)
        self.call_after_refresh(self.run_worker, _load_screens, thread=True, exit_on_error=False)

    def _fatal_error(self) -> None:
        # Textual would print a traceback with every local variable, keys among them. The command line says one line
        # and puts the traceback without variables into a file, as for any other fault.
        self._close_messages_no_wait()

    def on_unmount(self) -> None:
        if self._run_search is not None:
            self._run_search.close()
        for job in self.jobs:
            if job.code in QUIET_CODES:
                job.tidy()

    def run_search(self) -> RunSearch:
        """The store opened for searching the questions of one run.

        Raises:
            StoreError: the store cannot be opened any more.
        """
        if self._run_search is None:
            from memx.engine.store.search import RunSearch

            self._run_search = RunSearch(self.store.directory)
        return self._run_search

    def watch_store(self) -> None:
        """Let the screen on top read again when another process has written, and tell of commands that ended."""
        self._watch_jobs()
        try:
            version = self.store.data_version()
        except MemxError as error:
            self.notify(str(error), severity="error", markup=False)
            return
        if version != self._version:
            self._version = version
            self._triage.clear()
            self._stale = {screen for screen in self.screen_stack if isinstance(screen, BaseScreen)}
            self._freshen()

    def _freshen(self) -> None:
        """Let the screen on top read again if the store changed since it last did."""
        if self.screen in self._stale and isinstance(self.screen, BaseScreen) and self.screen.whole:
            self._stale.discard(self.screen)
            self.screen.data_changed()

    def triage(self, run: RunRow) -> Mapping[str, Triage]:
        """What stands about the questions of a run, kept until marks change."""
        key = run.dataset, run.adapter
        if key not in self._triage:
            self._triage[key] = self.marks.current(run)
        return self._triage[key]

    def triage_changed(self) -> None:
        """Marks or notes changed: read them anew, also on the screens below."""
        self._triage.clear()
        self._stale |= {screen for screen in self.screen_stack[:-1] if isinstance(screen, BaseScreen)}

    # -------------------------------------------------------------------------------------------- commands of this UI

    def start_job(self, arguments: Sequence[str], *, watch: bool) -> None:
        """Start a memx command in a process of its own; ``watch`` goes to a screen that shows how it goes."""
        try:
            job = Job(arguments, self.store.directory)
        except MemxError as error:
            self.show_error(error)
            return
        self.jobs.append(job)
        if watch:
            from memx.tui.screens.watch import WatchScreen

            self.push_screen(WatchScreen(job))

    def watch_run(self, run: RunRow) -> None:
        """Go to a screen that shows how a run goes."""
        from memx.tui.screens.watch import WatchScreen

        self.push_screen(WatchScreen(next((job for job in self.jobs if job.pid == run.pid), None), run))

    def _watch_jobs(self) -> None:
        for job in self.jobs:
            if job.code is not None and job not in self._told:
                self._told.add(job)
                if job.code in QUIET_CODES:
                    words = {0: "is done", 130: "was interrupted; R goes on with a run"}.get(job.code, "is done")
                    self.notify(f"memx {job.verb} {words}", timeout=6)
                else:
                    message, hint = job.complaint()
                    self.show_error(MemxError(message, hint))
                for screen in self.screen_stack:
                    if isinstance(screen, BaseScreen):
                        self._stale.add(screen)
                self._freshen()

    async def action_quit(self) -> None:
        self.leave()

    def leave(self) -> None:
        """End the program; while commands run, ask first whether they shall go on. Asked twice, they do."""
        from memx.tui.screens.leave import LeaveScreen

        going = [job for job in self.jobs if job.code is None]
        if not going or isinstance(self.screen, LeaveScreen):
            self.exit(0)
            return

        def chosen(answer: str | None) -> None:
            if answer == "stop":
                for job in going:
                    job.stop()
                self.notify("stopping; what is finished is kept", timeout=_STOP_S)
                self.run_worker(lambda: self._exit_after(going), thread=True, exit_on_error=False)
            elif answer == "leave":
                self.exit(0)

        self.push_screen(LeaveScreen(going), chosen)

    def _exit_after(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.wait(_STOP_S)
        self.call_from_thread(self.exit, 0)

    def open_clusters(self, run: RunRow) -> None:
        """Go to the mechanisms of a run's FAILs."""
        from memx.tui.screens.clusters import ClustersScreen

        self.push_screen(ClustersScreen(run))

    def open_compare(self, a: RunRow, b: RunRow) -> None:
        """Go to two runs side by side."""
        from memx.tui.screens.compare import CompareScreen

        self.push_screen(CompareScreen(a, b))

    def open_run(self, run: RunRow, base: Where | None = None, name: str = "questions") -> Listing:
        """Go to the questions of a run, or to a named part of them."""
        from memx.tui.screens.questions import QuestionsScreen

        screen = QuestionsScreen(run, self.store, base, name)
        self.push_screen(screen)
        return screen.listing

    def open_question(self, listing: Listing, index: int) -> None:
        """Go to a question of a list."""
        self._push_question(listing, index)

    def _push_question(self, listing: Listing, index: int | None, question_id: str | None = None) -> None:
        from memx.tui.screens.question import QuestionScreen

        self.push_screen(QuestionScreen(listing, index, question_id))

    def moved_to(self, index: int) -> None:
        """The question screen went along its list: the list below follows."""
        from memx.tui.screens.questions import QuestionsScreen

        below = self.screen_stack[-2]
        if isinstance(below, QuestionsScreen):
            below.go_to(index)

    def go_back(self) -> None:
        """To the screen below; on the first one nothing happens."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self._freshen()

    def show_error(self, error: MemxError) -> None:
        """Show what went wrong and what to do."""
        from memx.tui.screens.error import ErrorScreen

        if not (isinstance(self.screen, ErrorScreen) and str(self.screen.error) == str(error)):
            self.push_screen(ErrorScreen(error))


def _load_screens() -> None:
    """Import the screens that the first paint did without, before the user asks for them."""
    import memx.tui.screens.help
    import memx.tui.screens.question
    import memx.tui.screens.questions  # noqa: F401

    if not gc.isenabled():
        # What was loaded by now stays to the end: the collector need not look through it again, 50 ms each time.
        gc.freeze()
        gc.enable()


def debug(store_dir: Path, *, run_id: str | None, question_id: str | None) -> int:
    """Run the UI until the user leaves it; returns the exit code.

    Args:
        store_dir: the directory of the run store.
        run_id: open this run at once.
        question_id: open this question at once, in ``run_id`` or the newest run that has it.

    Raises:
        MemxError: there is no such run or question, or the store cannot be opened or made.
    """
    if question_id is None and run_id is None and not (store_dir / FILE_NAME).exists():
        # An empty store, so that the first run can be started from inside.
        with closing(open_for_writing(store_dir).conn):
            pass
    # Nothing that start-up makes is garbage.
    gc.disable()
    with closing(Store(store_dir)) as store, closing(Store(store_dir)) as search_store:
        opened: tuple[RunRow, str | None] | None = None
        if question_id is not None:
            opened = store.find_question(question_id, run_id)
        elif run_id is not None:
            opened = (store.run(run_id), None)
        app = DebugApp(store, search_store, opened, read_config())
        code = app.run()
        if app._exception is not None:
            raise app._exception
        return app.return_code or 0 if code is None else code

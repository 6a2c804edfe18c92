"""Marking, annotating and undoing, for every screen that shows questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memx.engine.store.marks import Mark, Triage
from memx.engine.store.reader import RunRow
from memx.tui.screens.base import BaseScreen
from memx.tui.screens.pick import Choice, PickScreen

#: What each mark says, and the key that gives it.
CHOICES = (
    Choice("o", "open: nobody decided yet", Mark.OPEN),
    Choice("s", "seen: looked at, undecided", Mark.SEEN),
    Choice("f", "fix: a defect worth fixing", Mark.FIX),
    Choice("w", "wont: known, will not be fixed", Mark.WONT),
    Choice("x", "nobug: the memory did right", Mark.NO_BUG),
)


class TriageScreen(BaseScreen):
    """A screen whose questions can be marked. Subclasses say which questions, and draw anew in :meth:`marked`."""

    def marked_run(self) -> RunRow:
        """The run whose questions are marked."""
        raise NotImplementedError

    def targets(self) -> Sequence[str]:
        """Ids of the questions that a mark now applies to."""
        raise NotImplementedError

    def marked(self) -> None:
        """Marks or notes changed: draw anew."""

    def triage_of(self, question_id: str) -> Triage:
        """What stands about a question."""
        return self.debug_app.triage(self.marked_run()).get(question_id, Triage())

    def action_mark(self) -> None:
        targets = self.attempt(self.targets) or ()
        if not targets:
            self.notify("there is no question to mark", timeout=3)
            return
        what = targets[0] if len(targets) == 1 else f"{len(targets):,} questions"

        def chosen(value: str | None) -> None:
            if value is not None:
                self.put(targets, Mark(value))

        self.app.push_screen(PickScreen(f"mark {what}", CHOICES), chosen)

    def put(self, question_ids: Sequence[str], mark: Mark) -> None:
        """Mark questions now."""
        changed = self.attempt(self.debug_app.marks.set, self.marked_run(), question_ids, mark)
        if changed is None:
            return
        self.debug_app.last_mark = mark
        self.debug_app.triage_changed()
        self.notify(f"{mark}: {changed:,} changed, u takes it back", timeout=3)
        self.marked()

    def action_probe(self) -> None:
        from memx.tui.running import probe

        targets = self.attempt(self.targets) or ()
        if targets:
            probe(self, self.marked_run(), targets[0])
        else:
            self.notify("there is no question to probe", timeout=3)

    def action_undo(self) -> None:
        undone = self.attempt(self.debug_app.marks.undo, self.marked_run())
        if undone is None:
            return
        self.notify(f"taken back for {undone:,}" if undone else "there is nothing to take back", timeout=3)
        self.debug_app.triage_changed()
        self.marked()

    def action_annotate(self) -> None:
        from memx.tui.screens.note import NoteScreen

        targets = self.attempt(self.targets) or ()
        if not targets:
            self.notify("there is no question to annotate", timeout=3)
            return
        # A note is about one question: with a selection it goes to the first of it.
        question_id = targets[0]
        note = self.triage_of(question_id).note
        self.app.push_screen(NoteScreen(f"note on {question_id}", note, self._keeper(question_id)))

    def _keeper(self, question_id: str) -> Callable[[str], None]:
        def keep(text: str) -> None:
            changed = self.attempt(self.debug_app.marks.annotate, self.marked_run(), question_id, text)
            if changed and self.whole:
                self.debug_app.triage_changed()
                self.marked()

        return keep


def progress_words(counts: dict[Mark, int]) -> str:
    """How far the triage of the FAILs is: ``12 of 592 triaged``."""
    total = sum(counts.values())
    return f"{total - counts.get(Mark.OPEN, 0):,} of {total:,} triaged" if total else ""

"""What screens with a filter share: values for completion, and filters that are kept by name."""

from __future__ import annotations

from memx.engine.store.reader import FACETS, RunRow
from memx.tui.screens.base import BaseScreen
from memx.tui.screens.pick import Choice, PickScreen, PromptScreen

#: As many as digits choose.
_MOST = 9


class Filtering(BaseScreen):
    """A screen with a filter that can be kept and taken again."""

    def filtered_run(self) -> RunRow:
        """The run whose questions are filtered."""
        raise NotImplementedError

    def values(self, column: str) -> list[str]:
        """The values in use of a column, for completion."""
        # Of texts there is nothing to choose from.
        if column not in FACETS:
            return []
        return list(self.attempt(self.debug_app.store.facets, self.filtered_run().run_id, column) or ())

    def filter_now(self) -> str:
        """The filter that is applied."""
        raise NotImplementedError

    def use_filter(self, text: str) -> None:
        """Put a filter into the line and apply it."""
        raise NotImplementedError

    def action_saved(self) -> None:
        """Take a kept filter, or keep the one in the line."""
        saved = self.attempt(self.debug_app.marks.saved_filters) or {}
        shown = list(saved.items())[:_MOST]
        choices = [Choice(str(n), f"{name}: {text}", text) for n, (name, text) in enumerate(shown, start=1)]
        if self.filter_now():
            choices.append(Choice("k", f"keep the filter in the line: {self.filter_now()}", ""))
        if not choices:
            self.notify("no filter is kept yet; type one, then F keeps it", timeout=3)
            return

        def chosen(text: str | None) -> None:
            if text:
                self.use_filter(text)
            elif text is not None:
                self.app.push_screen(PromptScreen("name of the filter (an old name is replaced)"), self._keep_filter)

        self.app.push_screen(PickScreen("saved filters", choices), chosen)

    def _keep_filter(self, name: str | None) -> None:
        if name is not None:
            self.attempt(self.debug_app.marks.save_filter, name, self.filter_now())

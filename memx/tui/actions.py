"""The one list of actions: keys, footer, help and palette are all made from it.

Every action has an id, so that a key can be moved by the configuration, and belongs to the screens (or panes) whose
code has an ``action_NAME`` for it. Keys are letters, digits, space, enter, escape, arrows and F1 alone: terminals and
multiplexers swallow others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does.

    Attributes:
        id: ``group.name``; names the key in the configuration.
        keys: as Textual writes them, separated by commas.
        name: what is called: ``action_NAME`` of the screen or pane.
        label: one or two words for the footer.
        help: one sentence for help and palette.
        footer: shown in the footer.
    """

    id: str
    keys: str
    name: str
    label: str
    help: str
    footer: bool = False

    @property
    def group(self) -> str:
        """Where it works: ``all``, ``list``, ``page`` or the name of a screen."""
        return self.id.partition(".")[0]


ACTIONS: tuple[Action, ...] = (
    Action("all.help", "question_mark,f1", "help", "keys", "Show the keys of this screen", True),
    Action("all.quit", "q", "leave", "quit", "Quit"),
    Action("all.back", "escape,h", "back", "back", "Go back; first clears the filter", True),
    Action("all.reload", "r", "reload", "reload", "Read the store again"),
    Action("all.copy", "y", "copy", "copy", "Copy what is shown, by the terminal (OSC 52)"),
    Action("all.export", "e", "export", "export", "Write what is shown to a file"),
    Action("all.command", "Y", "copy_command", "command", "Copy the command that prints the same"),
    Action("list.down", "j,down", "down", "down", "Next row"),
    Action("list.up", "k,up", "up", "up", "Previous row"),
    Action("list.page_down", "pagedown", "page_down", "page down", "A page down"),
    Action("list.page_up", "pageup", "page_up", "page up", "A page up"),
    Action("list.first", "g,home", "first", "first", "First row"),
    Action("list.last", "G,end", "last", "last", "Last row"),
    Action("list.open", "enter,l,right", "open", "open", "Open the row under the cursor", True),
    Action("page.down", "j,down", "down", "down", "A line down"),
    Action("page.up", "k,up", "up", "up", "A line up"),
    Action("page.page_down", "pagedown,space", "page_down", "page down", "A page down"),
    Action("page.page_up", "pageup", "page_up", "page up", "A page up"),
    Action("page.first", "g,home", "first", "top", "To the top"),
    Action("page.last", "G,end", "last", "end", "To the end"),
    Action("questions.filter", "slash", "filter", "filter", "Filter the list", True),
    Action("questions.cause", "f", "cycle_cause", "cause", "Next cause; after the last, all", True),
    Action("questions.sort", "s", "cycle_sort", "sort", "Next order of the list", True),
    Action("filters.saved", "F", "saved", "saved", "Saved filters: take one, or keep this one"),
    Action("questions.select", "space", "select", "select", "Select the row, or let it go"),
    Action("questions.select_all", "asterisk", "select_all", "select all", "Select all that is shown, or nothing"),
    Action("questions.repeat", "full_stop", "repeat", "repeat", "Repeat the last mark and go down"),
    Action("questions.clusters", "c", "clusters", "clusters", "FAILs by mechanism, and what each is worth", True),
    Action("triage.mark", "m", "mark", "mark", "Mark: open, seen, fix, wont, nobug", True),
    Action("triage.undo", "u", "undo", "undo", "Take the last mark or note back"),
    Action("triage.probe", "p", "probe", "probe", "Ask this question again with one thing changed, the price first"),
    Action("triage.note", "a", "annotate", "note", "Write a note"),
    Action("runs.pick", "space", "pick", "pick", "Pick the run as A, then as B, for comparing", True),
    Action("runs.compare", "c", "compare", "compare", "Compare the picked runs, or the two newest", True),
    Action("runs.summary", "i", "summary", "summary", "Summary of the run, with controls and what was noticed", True),
    Action("runs.arms", "z", "arms", "controls", "Show or hide the runs that are controls of others"),
    Action("runs.new", "n", "new", "new run", "Start a run", True),
    Action("runs.watch", "w", "watch", "watch", "Watch a run while it goes"),
    Action("work.stop", "x", "stop", "stop", "Stop the run as Ctrl-C would: what is finished is kept", True),
    Action("work.resume", "R", "resume", "resume", "Go on with a run that was interrupted or failed"),
    Action("work.rejudge", "J", "rejudge", "re-judge", "Judge the answers of the run again, the price first"),
    Action("work.probe", "p", "probe", "probe", "Ask failed questions again with one thing changed, the price first"),
    Action("watch.enter", "enter,l", "enter", "questions", "Go to the questions that are finished by now", True),
    Action("questions.zoom", "z", "zoom", "preview", "Show or hide the preview"),
    Action("question.tab", "1,2,3,4,5,6,7,8", "tab", "tabs", "Go to a tab by its number"),
    Action("question.next_tab", "l,right,tab", "next_tab", "next tab", "Next tab"),
    Action("question.previous_tab", "left,shift+tab", "previous_tab", "previous tab", "Previous tab"),
    Action("compare.group", "1,2,3,4,5", "group", "groups", "Show one group of the four-way table"),
    Action("compare.swap", "x", "swap", "swap", "Swap A and B", True),
    Action("compare.filter", "slash", "filter", "filter", "Filter by run B's questions", True),
    Action("question.previous", "left_square_bracket", "previous", "previous", "Previous question of the list", True),
    Action("question.next", "right_square_bracket", "next", "next", "Next question of the list", True),
    Action("question.rival_back", "comma", "rival_back", "rival", "Previous rival (near misses)"),
    Action("question.rival", "full_stop", "rival", "rival", "Next rival (near misses)"),
    Action("question.find", "slash", "find", "find", "Find a text on the page", True),
    Action("question.find_next", "n", "find_next", "next match", "Next match"),
    Action("question.find_previous", "N", "find_previous", "previous match", "Previous match"),
    Action("question.full", "v", "full", "full text", "Show long texts whole, or cut again"),
    Action("question.everything", "z", "everything", "all facts", "Store diff: all changes, or only those that matter"),
)

#: Actions after which typing goes elsewhere. Their keys are taken by the app before a pane sees them: keys that arrive
#: in one packet are otherwise handed to the old pane before the first of them has moved the focus.
AT_ONCE = frozenset(
    {
        "questions.filter",
        "compare.filter",
        "question.find",
        "filters.saved",
        "triage.mark",
        "triage.probe",
        "all.export",
        "runs.new",
        "work.rejudge",
        "work.probe",
    }
)
#: Actions that each digit calls with its number; their keys are not to be moved.
NUMBERED = ("question.tab", "compare.group")
BY_ID = {action.id: action for action in ACTIONS}


def bindings(*groups: str) -> list[Binding]:
    """The bindings of some groups, for the ``BINDINGS`` of a screen or pane."""
    return [made for action in ACTIONS if action.group in groups for made in _made(action)]


def _made(action: Action) -> Iterator[Binding]:
    if action.id in NUMBERED:
        # Each digit is its own call.
        for key in action.keys.split(","):
            yield Binding(key, f"{action.name}({key})", action.label, show=False, id=f"{action.id}_{key}")
        return
    yield Binding(
        action.keys,
        action.name,
        action.label,
        show=action.footer,
        tooltip=action.help,
        id=action.id,
        priority=action.id in AT_ONCE,
    )

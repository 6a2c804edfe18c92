"""Every action of the screen by name, for the palette (ctrl+p)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.widget import Widget

from memx.tui.actions import BY_ID, NUMBERED, Action


class Actions(Provider):
    """What the screen and its focused pane can do now."""

    async def discover(self) -> Hits:
        for action, node in self._active():
            yield DiscoveryHit(action.help, partial(node.run_action, action.name), help=action.id)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, node in self._active():
            # What the footer and the keymap call it counts too: "export" is not in "Write what is shown to a file".
            score = max(map(matcher.match, (action.help, action.label, action.id)))
            if score > 0:
                yield Hit(score, matcher.highlight(action.help), partial(node.run_action, action.name), help=action.id)

    def _active(self) -> Iterator[tuple[Action, Widget]]:
        seen = set()
        for active in self.screen.active_bindings.values():
            action_id = active.binding.id or ""
            known = action_id in BY_ID and action_id not in NUMBERED
            if known and action_id not in seen and isinstance(active.node, Widget):
                seen.add(action_id)
                yield BY_ID[action_id], active.node

"""The UI in a browser: textual-serve on loopback, behind a token that every address begins with.

The token is a part of the path, so that pages, their files and the websocket are all refused without it. It is made
anew at each start, said once on stderr, and kept nowhere else: requests are not logged, and no page of another host is
asked for anything that could tell it.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from memx.errors import UsageError

try:
    from aiohttp import web
    from textual_serve.server import Server
except ImportError:
    words = "--web needs the package textual-serve, which is not installed"
    raise UsageError(words, "pip install 'memx[web]'") from None

HOST = "127.0.0.1"
#: Pages load nothing from other hosts (the template asks for a font), and tell none where they came from.
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "style-src 'self' 'unsafe-inline'; font-src 'self' data:",
    "Cache-Control": "no-store",
}
#: What the template loads from another host.
_FOREIGN_STYLE = re.compile(r"<link\b[^>]*\bhref=\"https?://(?!127\.0\.0\.1|localhost)[^>]*fonts[^>]*>")
#: Keys go to the terminal as soon as it is drawn, without a click; no icon is asked for outside the token's path.
_HEAD = """<link rel="icon" href="data:,">
<script>
  addEventListener("DOMContentLoaded", () => new MutationObserver(
    () => document.querySelector(".xterm-helper-textarea")?.focus()
  ).observe(document.body, {attributes: true, attributeFilter: ["class"]}));
</script>
"""
#: Seconds that open pages are given at the end.
_PATIENCE_S = 2.0


class _Served(Server):  # type: ignore[misc]
    """One process of the UI for each page, without the banner and the log of textual-serve."""

    async def on_startup(self, app: web.Application) -> None:
        """Nothing to say: the address is told by the one who serves."""

    async def handle_index(self, request: web.Request) -> Any:
        # The address that the browser knows: a tunnel may have another port.
        self.public_url = f"http://{request.host}"
        page = await super().handle_index(request)
        page.text = _FOREIGN_STYLE.sub("", page.text).replace("</head>", f"{_HEAD}</head>", 1)
        return page


async def _application(command: str, token: str) -> web.Application:
    served = await _Served(command, host=HOST, title="memx debug")._make_app()

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=403, text="memx: open the address that memx debug --web printed, with its token\n")

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)

    guarded = web.Application()
    guarded.on_response_prepare.append(add_headers)
    guarded.add_subapp(f"/{token}", served)
    guarded.router.add_route("*", "/{rest:.*}", refuse)
    return guarded


async def _serve(command: str, port: int, tell: Callable[[str], None]) -> None:
    token = secrets.token_urlsafe(24)
    runner = web.AppRunner(await _application(command, token), access_log=None, shutdown_timeout=_PATIENCE_S)
    await runner.setup()
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        await web.TCPSite(runner, HOST, port).start()
        tell(f"http://{HOST}:{runner.addresses[0][1]}/{token}/")
        await ended.wait()
    except OSError as error:
        raise UsageError(f"port {port} cannot be served: {error.strerror}", "Choose another with --port.") from None
    finally:
        await runner.cleanup()


def serve(arguments: Sequence[str], port: int, tell: Callable[[str], None]) -> int:
    """Serve ``memx debug ARGUMENTS`` until Ctrl-C; returns the exit code.

    Args:
        port: on loopback; 0 for any that is free.
        tell: is given the address once it is served.

    Raises:
        UsageError: the port cannot be had.
    """
    command = shlex.join([sys.executable, "-m", "memx", "debug", *arguments])
    asyncio.run(_serve(command, port, tell))
    return 0

"""Where the real data lies: ``MEMX_SHARED``, or a folder ``shared`` beside the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def shared_data() -> Path:
    """The folder that holds ``data/``; ends the process with one line when it is absent."""
    found = Path(os.environ.get("MEMX_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not (found / "data").is_dir():
        sys.exit(f"no data at {found}: set MEMX_SHARED to the folder that holds data/")
    return found

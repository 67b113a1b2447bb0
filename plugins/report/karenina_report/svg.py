"""Figures of matplotlib as SVG that belongs to the page: its colours, its font, and no style of their own.

The page's policy allows no inline style, so every style becomes an attribute. Colours become classes, which the page
gives its own colours, light or dark; texts stay texts, so that they can be read aloud, searched and copied.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from .texts import shown

SVG = "http://www.w3.org/2000/svg"
HREF = "{http://www.w3.org/1999/xlink}href"
ROLES = (
    *("ink", "muted", "grid", "page"),
    *("passed", "failed", "auto_failed", "abstained", "insufficient", "scored", "error", "skipped"),
    *(f"series{number}" for number in range(8)),
)
COLOURS: Mapping[str, str] = {role: f"#0000{number:02x}" for number, role in enumerate(ROLES, 1)}
"""Role -> the colour that a figure is drawn with, which is replaced by the role's class. No other colour is drawn."""
ROLE_OF = {colour: role for role, colour in COLOURS.items()}
SCALE = 1.35
"""Pixels of a page for one unit of a drawing, where there is room."""
DROPPED = ("metadata", "style", "desc", "title")


def as_svg(figure: Any, name: str, description: str) -> Markup:
    """The figure as an `<svg>` element. `name` is its own on the page, `description` is read aloud instead of it."""
    import matplotlib

    written = io.BytesIO()
    drawn_as = matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name})
    with drawn_as, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the browser's fonts draw it
        figure.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(written.getvalue())
    _clean(root, name)
    for attribute in ("height", "version"):
        root.attrib.pop(attribute, None)
    width = f"{SCALE * float(root.attrib['viewBox'].split()[2]):.0f}"
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-title", "class": "plot", "width": width}
    title = ElementTree.Element(f"{{{SVG}}}title", {"id": f"{name}-title"})
    title.text = shown(description)
    root.insert(0, title)
    ElementTree.register_namespace("", SVG)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _clean(parent: ElementTree.Element, name: str) -> None:
    for child in list(parent):
        if child.tag.rpartition("}")[2] in DROPPED or not isinstance(child.tag, str):
            parent.remove(child)
            continue
        classes = []
        styles = dict(part.partition(":")[::2] for part in child.attrib.pop("style", "").split(";") if part.strip())
        for key, found in ((key.strip(), found.strip()) for key, found in styles.items()):
            if key in ("fill", "stroke") and found in ROLE_OF:
                classes.append(f"{key}-{ROLE_OF[found]}")
            elif key == "font":
                child.set("font-size", found.partition("px")[0].split()[-1])
            elif key == "clip-path" or not found.startswith("url"):
                child.set(key, found)
        for key in ("fill", "stroke"):
            if child.get(key) in ROLE_OF:
                classes.append(f"{key}-{ROLE_OF[child.attrib.pop(key)]}")
        if classes:
            child.set("class", " ".join(classes))
        if HREF in child.attrib:
            child.set("href", f"#{name}-{child.attrib.pop(HREF).removeprefix('#')}")
        if "id" in child.attrib:
            child.set("id", f"{name}-{child.attrib['id']}")
        if child.get("clip-path", "").startswith("url(#"):
            child.set("clip-path", f"url(#{name}-{child.attrib['clip-path'].removeprefix('url(#')}")
        _clean(child, name)

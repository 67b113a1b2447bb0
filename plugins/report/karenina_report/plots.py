"""The plots of a report as SVG that belongs to the page: its colours, its font, and no style of their own.

Every number in them is in a table of the page, too. The page's policy allows no inline style, so every style becomes an
attribute. Colours become classes, which the page gives its own colours, light or dark; texts stay texts, so that they
can be read aloud, searched and copied.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from .outcomes import OutcomeKind
from .pairs import Pair, TraitProfile
from .texts import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


WIDTH, WIDE = 5.7, 8.6
"""Inches; 72 units of the drawing each."""
ROW, MARGIN, LEGEND = 0.34, 0.5, 0.22
"""Inches: the height of a row, of the axis below, and of a line of the legend."""
CHARACTER = 0.083
"""Inches that a character of a row's name may take: what a browser draws may be wider than what is measured here."""
LONGEST_NAME = 32
"""Characters of a row's name; chosen."""
SIZE = 10.0
"""Points of a text."""
MARKERS = "osD^vPX*"
SERIES = 8
"""Colours of the page for pairs and classes; see `ROLES`."""
MOST_MARKS = 250
"""Of one row. More lie on each other and only make the page slow."""


def interval_plot(pairs: Sequence[Pair]) -> Figure:
    """Pass rates with their intervals, one row a pair."""
    figure, axes = _rows([pair.label for pair in pairs])
    _share_axis(axes, "pass rate")
    for y, pair in enumerate(pairs):
        rate = pair.numbers.pass_rate
        if rate.value is not None:
            ends = (rate.interval.low, rate.interval.high) if rate.interval else (None, None)
            _interval(axes, y, rate.value, ends, "series0")
    return figure


def outcome_bars(pairs: Sequence[Pair], kinds: Sequence[OutcomeKind]) -> Figure:
    """How many items ended how; the classes lie side by side and are never added up."""
    counts = [[pair.line["outcomes"].get(kind.name, 0) for kind in kinds] for pair in pairs]
    figure, axes = _rows([pair.label for pair in pairs], legend=[kind.label for kind in kinds])
    _bars(axes, counts, [(kind.label, kind.name) for kind in kinds])
    axes.set_xlabel("items", color=COLOURS["muted"], size=SIZE, parse_math=False)
    return figure


def class_bars(profile: TraitProfile) -> Figure:
    """How often each class of a literal trait was given."""
    classes = profile.classes
    lines = [cell.line.get("classes") or cell.line.get("texts") or {} for cell in profile.cells]
    counts = [[line.get(name, 0) for name in classes] for line in lines]
    figure, axes = _rows([cell.pair.label for cell in profile.cells], legend=[short_name(name) for name in classes])
    _bars(axes, counts, [(short_name(name), f"series{number % SERIES}") for number, name in enumerate(classes)])
    axes.set_xlabel("items", color=COLOURS["muted"], size=SIZE, parse_math=False)
    return figure


def trait_plot(profiles: Sequence[TraitProfile], pairs: Sequence[Pair]) -> Figure:
    """Rates with their intervals, and means on their own scales, one row a trait, one mark a pair."""
    from matplotlib.lines import Line2D

    inches = 0.14 + 0.17 * len(pairs)
    figure, axes = _rows(
        [profile.name for profile in profiles],
        row=max(inches, ROW),
        legend=[short_name(pair.label) for pair in pairs],
        width=WIDE,
    )
    _share_axis(axes, "share of true, or the mean's place on its scale, with 95 % intervals")
    step = 0.7 / max(len(pairs), 2)
    for row, profile in enumerate(profiles):
        for cell in profile.cells:
            y = row + (cell.pair.index - (len(pairs) - 1) / 2) * step
            if cell.position is not None:
                role, marker = look(cell.pair)
                _interval(axes, y, cell.position, (cell.low, cell.high), role, marker)
    handles = []
    for pair in pairs:
        role, marker = look(pair)
        handles.append(Line2D([], [], marker=marker, color=COLOURS[role], linestyle="none", markersize=7))
    _legend(axes, handles, [short_name(pair.label) for pair in pairs])
    return figure


def seconds_plot(pairs: Sequence[Pair]) -> Figure:
    """How long each item took: a mark an item, a line where half of them lie below."""
    figure, axes = _rows([pair.label for pair in pairs])
    for y, pair in enumerate(pairs):
        ordered = sorted(pair.seconds)
        shown_ones = ordered[:: -(-len(ordered) // MOST_MARKS) or 1]
        heights = [y + 0.24 * ((7 * number % 11) / 5 - 1) for number in range(len(shown_ones))]
        axes.plot(shown_ones, heights, "o", color=COLOURS["series0"], markersize=4, alpha=0.45, markeredgewidth=0)
        if (middle := pair.median_seconds) is not None:
            axes.plot([middle, middle], [y - 0.36, y + 0.36], color=COLOURS["ink"], linewidth=2)
    longest = max((max(pair.seconds) for pair in pairs if pair.seconds), default=0) or 1
    axes.set_xlim(-0.015 * longest, 1.04 * longest)
    thinned = any(len(pair.seconds) > MOST_MARKS for pair in pairs)
    label = f"seconds for an item{' (some of them, evenly picked)' if thinned else ''}; the line is the median"
    axes.set_xlabel(label, color=COLOURS["muted"], size=SIZE, parse_math=False)
    return figure


def _rows(
    names: Sequence[str], *, row: float = ROW, legend: Sequence[str] = (), width: float = WIDTH
) -> tuple[Figure, Axes]:
    """A figure with one row a name, the first at the top, and room for a legend."""
    from matplotlib.figure import Figure

    labels = [short_name(name) for name in names]
    head = 0.08 + (LEGEND * -(-len(legend) // _columns(legend, width)) + 0.06 if legend else 0)
    height = MARGIN + row * len(names) + head
    left = min(0.18 + CHARACTER * max(map(len, labels), default=0), 0.5 * width) / width
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((left, MARGIN / height, 0.955 - left, row * len(names) / height))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), labels)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a dollar in a name is no formula
    axes.tick_params(length=0, labelcolor=COLOURS["ink"], labelsize=SIZE)
    axes.tick_params(axis="x", labelcolor=COLOURS["muted"], labelsize=SIZE - 1)
    axes.grid(axis="x", color=COLOURS["grid"], linewidth=1)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure, axes


def _columns(labels: Sequence[str], width: float) -> int:
    """Entries of a legend side by side."""
    widest = 0.4 + CHARACTER * max(map(len, labels), default=0)
    return max(min(int(width / widest), len(labels)), 1)


def short_name(name: str) -> str:
    """Long ones without their middle: names of models and judges differ at the beginning or at the end."""
    text = " ".join(shown(name).split())
    if len(text) <= LONGEST_NAME:
        return text
    parts = text.split(" | ")
    half = ((LONGEST_NAME - 3 * (len(parts) - 1)) // len(parts) - 1) // 2
    return " | ".join(part if len(part) <= 2 * half + 1 else f"{part[:half]}…{part[-half:]}" for part in parts)


def _share_axis(axes: Axes, label: str) -> None:
    axes.set_xlim(-0.015, 1.015)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel(label, color=COLOURS["muted"], size=SIZE, parse_math=False)


def _interval(
    axes: Axes, y: float, at: float, ends: tuple[float | None, float | None], role: str, marker: str = "o"
) -> None:
    low, high = ends
    if low is not None and high is not None:
        axes.plot([low, high], [y, y], color=COLOURS[role], linewidth=3, solid_capstyle="round", alpha=0.55)
    axes.plot([at], [y], marker, color=COLOURS[role], markersize=8, markeredgecolor=COLOURS["page"], clip_on=False)


def look(pair: Pair) -> tuple[str, str]:
    """A colour and a mark; together they are those of 64 pairs."""
    return f"series{pair.index % SERIES}", MARKERS[(pair.index + pair.index // SERIES) % len(MARKERS)]


def _bars(axes: Axes, counts: Sequence[Sequence[int]], classes: Sequence[tuple[str, str]]) -> None:
    from matplotlib.ticker import MaxNLocator

    ends = [0] * len(counts)
    widest = max((sum(row) for row in counts), default=0) or 1
    for number, (label, role) in enumerate(classes):
        widths = [row[number] for row in counts]
        axes.barh(
            range(len(counts)), widths, left=ends, height=0.62, label=label, color=COLOURS[role],
            edgecolor=COLOURS["page"], linewidth=1.2,
        )  # fmt: skip
        for y, (width, start) in enumerate(zip(widths, ends, strict=True)):
            if width / widest > 0.035:
                middle = start + width / 2
                axes.text(middle, y, str(width), color=COLOURS["page"], size=SIZE, ha="center", va="center_baseline")
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    axes.set_xlim(0, widest * 1.01)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    handles, labels = axes.get_legend_handles_labels()
    _legend(axes, handles, labels)


def _legend(axes: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """At the top left of the figure, to be read row by row."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    columns = _columns(labels, figure.get_figwidth())
    order = [place for column in range(columns) for place in range(column, len(labels), columns)]
    legend = figure.legend(
        [handles[place] for place in order], [labels[place] for place in order], ncols=columns, frameon=False,
        loc="upper left", bbox_to_anchor=(0, 1), fontsize=SIZE - 0.5, handlelength=0.9, handletextpad=0.5,
        columnspacing=1.6, borderaxespad=0.2, borderpad=0.2,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_color(COLOURS["ink"])
        text.set_parse_math(False)

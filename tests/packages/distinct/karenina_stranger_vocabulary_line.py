"""What the package adds to the command line: an option of `karenina verify`, and a section of `karenina doctor`."""

from karenina_core.plugin.command_line import PluginOption, Section

OPTIONS = (PluginOption("--distinct-words", "Count every word of an answer once.", "distinct", bool),)


def examine(app) -> Section:
    rows = [{"unit": "word", "distinct": app.settings("vocabulary").distinct}]
    return Section.of("vocabulary", "Counted", ("unit", "distinct"), rows)

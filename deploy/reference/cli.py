"""docs/reference/cli.md: the commands and options of the programs, from their manual pages (support/man_page.cc)."""
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile

from reference import markdown

OTHER_PROGRAMS = ["berthd", "berth-agent", "berth-authd", "berth-web", "berth-sim"]
HELP = "`-h`, `--help`"
ESCAPES = {"\\-": "-", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\e": "\\", "\\&": ""}
INTRO = """\
All commands of all programs, with their options. Every command also has `-h` and `--help`, which print this text.
[Commands](../users/commands.md) explains how to work with `berth`. The manual pages have the same content: `man berth`,
`man berth-job`, `man berthd`.
"""


@dataclasses.dataclass
class Section:
    """A command: its line, what it does, and its options (or, in .SH COMMANDS of berth(1), commands) with their texts."""
    title: str
    text: list = dataclasses.field(default_factory=list)
    items: list = dataclasses.field(default_factory=list)  # [head, text]


def page(tree):
    bin_folder = pathlib.Path(os.environ.get("BERTH_BIN", tree / "build" / "release" / "bin"))
    pages = manual_pages(bin_folder)
    blocks = [markdown.head("the manual pages of berth, berthd, berth-agent, berth-authd, berth-web and berth-sim"), "# Command line", INTRO.rstrip()]
    shown_notes = set()  # those of berth are in all its pages
    for name, manual in pages.items():
        sections = read(name, manual)
        blocks += page_blocks(name, sections)
        notes = [" ".join(section.text) for section in sections if section.title == "NOTES"]
        blocks += [plain_text(note) for note in notes if note not in shown_notes]
        shown_notes.update(notes)
    return markdown.join(blocks)


def manual_pages(bin_folder):
    """Manual pages by what is typed: "berth", "berth job", ..., "berthd"."""
    if not (bin_folder / "berth").exists():
        raise SystemExit(f"deploy/docs: {bin_folder}/berth is not there: build it, or set BERTH_BIN")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([bin_folder / "berth", "man", "--directory", folder], check=True)
        found = {path.stem: path.read_text() for path in pathlib.Path(folder).iterdir()}
    pages = {"berth": found["berth"]}
    for name in re.findall(r"^\.BR berth\\-([\w\\-]+) \(1\)", found["berth"], re.M):
        command = unescape(name)
        if f"berth-{command}" in found:
            pages[f"berth {command}"] = found[f"berth-{command}"]
    for program in OTHER_PROGRAMS:
        pages[program] = subprocess.run([bin_folder / program, "--man"], check=True, capture_output=True, text=True).stdout
    return pages


def read(name, manual):
    """The sections of a manual page, by title. An unknown macro is an error: the page would not show what it says."""
    sections = [Section("")]
    item = None  # the item whose head or text comes next
    for line in manual.splitlines():
        macro, _, rest = line.partition(" ") if line.startswith(".") else ("", "", line)
        if macro in (".SH", ".SS"):
            sections.append(Section(rest))
            item = None
        elif macro == ".TP":
            item = ["", ""]
            sections[-1].items.append(item)
        elif macro in (".TH", ".BR"):
            continue
        elif macro:
            raise SystemExit(f"deploy/docs: manual page of {name}: unknown macro {macro}")
        elif item is None:
            sections[-1].text.append(line)
        elif not item[0]:
            item[0] = line
        else:
            item[1] = f"{item[1]} {line}".strip()
    return sections[1:]


def page_blocks(name, sections):
    by_title = {section.title: section for section in sections}
    options = by_title.get("OPTIONS", Section(""))
    description = " ".join(by_title["NAME"].text[1:])  # below "berth-job \-"
    blocks = [f"## {name}", plain_text(description), synopsis(" ".join(by_title["SYNOPSIS"].text)), option_table(options)]
    for section in sections:
        if section.title.startswith("\\fB"):
            blocks += command_blocks(section)
    if "COMMANDS" in by_title and by_title["COMMANDS"].items:
        blocks.append(command_table(name, by_title["COMMANDS"]))
    return blocks


def command_blocks(section):
    title = unescape(re.match(r"\\fB(.*?)\\fR", section.title).group(1))
    return [f"### {title}", plain_text(" ".join(section.text)), synopsis(section.title), option_table(section)]


def command_table(name, section):
    rows = []
    for head, text in section.items:
        command = f"{name} {plain(head)}"
        rows.append([f"[{command}](#{markdown.slug(command)})", plain_text(text)])
    return markdown.table(["command", "meaning"], rows)


def option_table(section):
    rows = [[option_head(head), plain_text(text)] for head, text in section.items]
    rows = [row for row in rows if row[0] != HELP]
    return markdown.table(["option", "meaning"], rows) if rows else ""


def option_head(head):
    """`-o`, `--output` *json|name*."""
    def styled(match):
        style, word = match.group(1), unescape(match.group(2))
        return markdown.code(word) if style == "B" else f"*{markdown.escape(word)}*"

    return re.sub(r"\\f([BI])(.*?)\\fR", styled, head)


def synopsis(line):
    return f"```\n{plain(line)}\n```"


def plain(text):
    """Without fonts and escapes."""
    return unescape(re.sub(r"\\f[BIR]", "", text))


def plain_text(text):
    return markdown.text(plain(text))


def unescape(text):
    return re.sub(r"\\(?:\([a-z]{2}|.)", lambda match: ESCAPES[match.group(0)], text)

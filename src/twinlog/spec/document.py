"""YAML as plain data, with the line and column of every key and value.

Called by the loader. The YAML library only parses; data is built here from its nodes, so that
duplicate keys, cycles and merges are all found at once and each has a place. `read` raises
nothing: whatever is wrong with the text is a problem of the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from twinlog.errors import Problem

Path = tuple[str | int, ...]
MAX_VALUES = 100_000  # aliases can make a small file enormous
MAX_DEPTH = 50
_MAX_DIGITS = 40  # a longer number stays text and is refused as such
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Place:
    """Where something stands in the file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Text:
    """A text as it stands in the file: what it says, and where its first character is."""

    value: str
    first: Place | None  # None if its lines are not those of the file (folded, or with escapes)
    indent: int = 0  # of its further lines

    def place(self, character: int) -> Place | None:
        """Where one of its characters stands."""
        if self.first is None:
            return None
        before = self.value[:character]
        line = before.count("\n")
        column = character - (before.rfind("\n") + 1)
        return Place(self.first.line + line, column + (self.indent + 1 if line else self.first.column))


@dataclass
class Document:
    """The data of a file, and where each part of it stands."""

    data: Any = None
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    broken: list[Path] = field(default_factory=list)  # where the problems are
    texts: dict[Path, Text] = field(default_factory=dict)

    def place(self, path: Path, *, at_key: bool) -> Place:
        """The place of a key or value; of the nearest key above it if the file does not have it."""
        if not at_key and path in self.values:
            return self.values[path]
        while path:
            if path in self.keys:
                return self.keys[path]
            if path in self.values:
                return self.values[path]
            path = path[:-1]
        return self.values.get((), Place(1, 1))

    def place_within(self, path: Path, character: int) -> Place:
        """The place of a character of a text; of the text itself if its lines are not those of the file."""
        text = self.texts.get(path)
        place = text.place(character) if text is not None else None
        return place if place is not None else self.place(path, at_key=False)


def read(text: str) -> Document:
    """Parse a file; what is wrong with it is in `problems`."""
    document = Document()
    try:
        root = _compose(text)
    except MarkedYAMLError as error:
        document.problems.append(_syntax_problem(error))
        return document
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        what = f"character {_code_point(error.character)} cannot stand in a YAML file"
        document.problems.append(Problem(line, column, what, "was the file saved as plain UTF-8 text?"))
        return document
    except (YAMLError, ValueError, RecursionError, AttributeError, NotImplementedError, IndexError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "this is not YAML"
        document.problems.append(Problem(1, 1, what, "twinlog init writes a file to start from"))
        return document
    if root is not None:
        _Builder(document, text.splitlines()).build_root(root)
    return document


def _compose(text: str) -> Node | None:
    parser = YAML(typ="rt", pure=True)
    node: Node | None = parser.compose(text)
    return node


def _syntax_problem(error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = _mark_place(mark) if mark else Place(1, 1)
    said = error.problem or error.context or "something unexpected"
    if "'\\t'" in said:
        return Problem(place.line, place.column, "a tab cannot indent YAML", "indent with two blanks")
    if "expected a single document" in (error.context or ""):
        what = "the file holds a second document"
        return Problem(place.line, place.column, what, "remove the line `---` and what follows it")
    if "undefined alias" in said:
        what = said.replace("found undefined alias", "there is no anchor")
        hint = "an anchor (&name) must stand above the first alias (*name) of it"
        return Problem(place.line, place.column, what, hint)
    if "quoted scalar" in (error.context or "") and error.context_mark:
        place = _mark_place(error.context_mark)
        return Problem(place.line, place.column, "this quote is never closed", "close it on the same line")
    if "flow" in (error.context or "") and error.context_mark:
        opened = _mark_place(error.context_mark)
        hint = f"is the bracket of line {opened.line}, column {opened.column} closed, or a comma missing?"
        return Problem(place.line, place.column, f"this is not YAML: {said}", hint)
    return Problem(place.line, place.column, f"this is not YAML: {said}", _syntax_hint(said))


def _syntax_hint(said: str) -> str:
    if "mapping values are not allowed" in said or "could not find expected ':'" in said:
        return "is the indentation right, and is there a blank after each colon?"
    if "<block end>" in said:
        return "do the lines of this block start in the same column?"
    if "cannot start any token" in said:
        return "put the text in quotes"
    return "is a bracket, quote or colon missing on this line or the one before?"


def _code_point(character: Any) -> str:
    return f"U+{ord(character):04X}" if isinstance(character, str) else f"0x{character:02X}"


def _mark_place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


class _Builder:
    """Turns nodes into data; notes places and problems on the way."""

    def __init__(self, document: Document, lines: Sequence[str]) -> None:
        self.document = document
        self.lines = lines
        self.open: list[int] = []  # ids of the nodes that are being built, to see cycles

    def build_root(self, root: Node) -> None:
        values, depth = _extent(root, {})
        if values > MAX_VALUES or depth > MAX_DEPTH:
            what = f"{values} values" if values > MAX_VALUES else f"{depth} levels"
            self._problem(
                root, f"the file comes to {what}", "write it with fewer aliases (*name) and levels", ()
            )
        else:
            self.document.data = self.build(root, ())

    def build(self, node: Node, path: Path) -> Any:
        if id(node) in self.open:
            self._problem(node, f"the anchor {_anchor(node)} holds itself", "remove one of its aliases", path)
            return None
        left_out = isinstance(node, ScalarNode) and node.value == "" and node.style is None
        if not left_out:  # else its key is the only place it has
            self.document.values[path] = _mark_place(node.start_mark)
        self.open.append(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            if isinstance(node, SequenceNode):
                return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
            assert isinstance(node, ScalarNode)
            return self._scalar(node, path)
        finally:
            self.open.pop()

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in self._own_pairs(node, path):
            key = str(key_node.value)
            if key in result:
                first = self.document.keys[*path, key]
                hint = f"the first one is in line {first.line}; keep one"
                self._problem(key_node, f"the key {key} stands here twice", hint, (*path, key))
                continue
            self.document.keys[*path, key] = _mark_place(key_node.start_mark)
            result[key] = self.build(value_node, (*path, key))
        for merged in self._merged(node, path):
            for key_node, value_node in self._own_pairs(merged, path):
                key = str(key_node.value)
                if key not in result:
                    self.document.keys[*path, key] = _mark_place(key_node.start_mark)
                    result[key] = self.build(value_node, (*path, key))
        return result

    def _own_pairs(self, node: MappingNode, path: Path) -> Iterator[tuple[ScalarNode, Node]]:
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, "a key must be plain text", "write it as `name: value`", path)
            elif not _is_merge(key_node):
                yield key_node, value_node

    def _merged(self, node: MappingNode, path: Path) -> Iterator[MappingNode]:
        """The mappings that `<<` names, nearest first, and what they merge in turn."""
        for key_node, value_node in node.value:
            if not (isinstance(key_node, ScalarNode) and _is_merge(key_node)):
                continue
            sources = value_node.value if isinstance(value_node, SequenceNode) else [value_node]
            for source in sources:
                if not isinstance(source, MappingNode):
                    self._problem(source, "<< takes a mapping", "name one with an anchor: <<: *name", path)
                elif id(source) in self.open:
                    self._problem(key_node, f"{_anchor(source)} merges itself", "remove this <<", path)
                else:
                    self.open.append(id(source))
                    try:
                        yield source
                        yield from self._merged(source, path)
                    finally:
                        self.open.pop()

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text = str(node.value)
        kind = str(node.tag).removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind in ("int", "float"):
            return _number(text, kind)
        if kind in ("str", "timestamp", "value"):
            self.document.texts[path] = _text(node, self.lines)
            return text
        self._problem(node, f"the tag {node.tag} means nothing here", "write the value without a tag", path)
        return text

    def _problem(self, node: Node, what: str, hint: str, path: Path) -> None:
        place = _mark_place(node.start_mark)
        self.document.problems.append(Problem(place.line, place.column, what, hint, dotted(path)))
        self.document.broken.append(path)


def _extent(node: Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many values and levels a node comes to with all aliases followed; cycles count once."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = (1, 1)
    if isinstance(node, MappingNode):
        below = [_extent(value, known) for _, value in node.value]
    elif isinstance(node, SequenceNode):
        below = [_extent(value, known) for value in node.value]
    else:
        below = []
    known[id(node)] = (
        1 + sum(values for values, _ in below),
        1 + max((depth for _, depth in below), default=0),
    )
    return known[id(node)]


def dotted(path: Path) -> str:
    """A path for people: `sites.a.brokers`."""
    return ".".join(str(part) for part in path)


def _is_merge(node: ScalarNode) -> bool:
    return node.value == "<<" and node.style is None


def _text(node: ScalarNode, lines: Sequence[str]) -> Text:
    start, value = node.start_mark, str(node.value)
    if node.style == "|":
        below = lines[start.line + 1 : start.line + 1 + len(value.splitlines())]
        indent = min((len(line) - len(line.lstrip(" ")) for line in below if line.strip()), default=0)
        return Text(value, Place(start.line + 2, indent + 1), indent)
    if node.style == ">" or len(value) != node.end_mark.index - start.index - (2 if node.style else 0):
        return Text(value, None)
    return Text(value, Place(start.line + 1, start.column + (2 if node.style else 1)))


def _anchor(node: Node) -> str:
    return f"&{node.anchor}" if node.anchor else "this value"


def _number(text: str, kind: str) -> Any:
    plain = text.replace("_", "")
    if len(plain) > _MAX_DIGITS:
        return text
    try:
        if kind == "float":
            return float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return int(plain, 0) if plain.lstrip("+-")[:2].lower() in ("0x", "0o", "0b") else int(plain)
    except ValueError:
        return text

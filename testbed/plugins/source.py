"""A protocol in a file of its own: one file, which a run keeps, so that it can be run again.

The file may import the standard library, NumPy and ``testbed``, but no file beside it: a run directory
keeps this file and nothing else. Who needs more makes a package and installs it.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import sys
import traceback
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from testbed.errors import UserError, read_text
from testbed.protocols import Message, Protocol
from testbed.protocols.base import given_wire_id

KEPT = "protocol"  # the directory within a run directory
HINT = "say `from testbed.protocols import …`, for a protocol in a file is in no package"
ONE_FILE = "a protocol is one file, which runs keep: put it in there, or install it as a package"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,49}")
SOURCE = "__source__"  # of a module: what it was made from
_modules: dict[tuple[Path, str], ModuleType] = {}
# The imports of a file that are not allowed, each with its line and what is wrong with it.
Refused = Callable[[ast.Module, Path], Iterable[tuple[int, str]]]


def is_file(name: str) -> bool:
    """Whether a protocol's name is that of a file, and maybe of a class in it."""
    return "/" in name or name.partition(":")[0].endswith(".py")


@dataclass(frozen=True)
class Source:
    """The text of a protocol's file, where it was, and the class that is meant; "": the only one."""

    file: Path
    text: str
    cls: str

    @classmethod
    def read(cls, name: str, base: Path) -> Source:
        """What ``./mine.py:Mine`` names, from a directory."""
        path, _, chosen = name.partition(":")
        file = (base / path).expanduser().absolute()
        try:
            return cls(file, read_text(file), chosen)
        except FileNotFoundError:
            raise UserError(
                f"{base / path}: no such file; a protocol was looked for in it"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{base / path}: cannot be read as Python: {error}") from None

    def __str__(self) -> str:
        return f"{self.file}:{self.cls}"

    @property
    def sha256(self) -> str:
        """The hash of the text."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def kept(self) -> str:
        """Where a run directory keeps it."""
        return f"{KEPT}/{self.file.name}"

    def load(self, taken: Container[str], refused: Refused | None = None) -> type[Protocol]:
        """The class, ready to be run; its name must not be ``taken``, nor may imports be refused."""
        found = self._class(self._module(refused or _imports_beside))
        return checked(found, f"{self.file.name}: {found.__name__}", taken)

    def _module(self, refused: Refused) -> ModuleType:
        """The file as a module, executed once for each text that it has had."""
        key = self.file, self.sha256
        if key not in _modules:
            name = f"own_{re.sub(r'[^A-Za-z0-9]', '_', self.file.stem)}_{self.sha256[:12]}"
            module = ModuleType(name)
            module.__file__ = str(self.file)
            module.__spec__ = ModuleSpec(name, None, origin=str(self.file))
            setattr(module, SOURCE, self)
            sys.modules[name] = module  # dataclasses and type hints look there
            try:
                self._execute(module, refused)
            except BaseException:
                del sys.modules[name]
                raise
            _modules[key] = module
        return _modules[key]

    def _execute(self, module: ModuleType, refused: Refused) -> None:
        name = self.file.name
        try:
            tree = ast.parse(self.text)
            for line, problem in refused(tree, self.file.parent):
                raise UserError(f"{name}, line {line}: {problem}")
            exec(compile(tree, str(self.file), "exec"), module.__dict__)
        except UserError:
            raise
        except SyntaxError as error:
            raise UserError(f"{name}, line {error.lineno}: not Python: {error.msg}") from None
        except (Exception, SystemExit) as error:  # whatever its statements do
            lines = [
                line
                for frame, line in traceback.walk_tb(error.__traceback__)
                if frame.f_code.co_filename == str(self.file)
            ]
            at = f", line {lines[-1]}" if lines else ""
            what = f"{type(error).__name__}: {error}"
            raise UserError(f"{name}{at}: cannot be loaded: {what}{_hint(error)}") from None

    def _class(self, module: ModuleType) -> type[Protocol]:
        own = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        }
        fit = [name for name, value in own.items() if issubclass(value, Protocol)]
        if self.cls:
            if self.cls not in own:
                has = f"it has {', '.join(own)}" if own else "it has none"
                raise UserError(f"{self.file.name}: there is no class {self.cls!r} in it; {has}")
            if self.cls not in fit:
                raise UserError(
                    f"{self.file.name}: {self.cls} is not a protocol: it does not derive from "
                    "testbed.protocols.Protocol"
                )
            return own[self.cls]
        if len(fit) != 1:
            has = (
                f"it has {', '.join(fit)}" if fit else "it has no class that derives from Protocol"
            )
            raise UserError(
                f"{self.file.name}: name the protocol's class, as in {self.file.name}:Mine; {has}"
            )
        return own[fit[0]]


def source_of(protocol: type[Protocol]) -> Source | None:
    """The file that a protocol was loaded from, if it is not part of an installed package."""
    source: Source | None = getattr(sys.modules.get(protocol.__module__), SOURCE, None)
    return source and dataclasses.replace(source, cls=protocol.__name__)


def checked(protocol: Any, where: str, taken: Container[str]) -> type[Protocol]:
    """The class, as a protocol that can be run, with a wire id; what it lacks is an error."""
    if not (isinstance(protocol, type) and issubclass(protocol, Protocol)):
        raise UserError(f"{where} is not a class that derives from testbed.protocols.Protocol")
    if lacks := sorted(getattr(protocol, "__abstractmethods__", ())):
        raise UserError(f"{where} lacks {' and '.join(lacks)}, which every protocol has")
    name = vars(protocol).get("name")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise UserError(
            f"{where} needs a name of its own of letters, digits, '-' and '_': "
            f'name: ClassVar[str] = "mine"; it has {name!r}'
        )
    if name in taken:
        raise UserError(f"{where} is called {name!r}, as a protocol of the testbed; rename it")
    _check_parts(protocol, where)
    protocol.wire_id = given_wire_id(name)
    return protocol


def _check_parts(protocol: type[Protocol], where: str) -> None:
    """See that messages and settings are what they should be."""
    messages: Any = protocol.messages
    if not isinstance(messages, tuple) or not all(
        isinstance(message, type) and issubclass(message, Message) for message in messages
    ):
        raise UserError(f"{where}: messages must be a tuple of classes derived from Message")
    if len({message.kind for message in messages}) < len(messages):
        raise UserError(f"{where}: two of its messages have the same kind; see of_kind")
    try:
        if not dataclasses.is_dataclass(protocol.Settings):
            raise TypeError("it is not a dataclass")
        protocol.Settings()
    except Exception as error:
        raise UserError(
            f"{where}: Settings must be a dataclass whose fields have defaults: {error}"
        ) from None


def _imports_beside(tree: ast.Module, directory: Path) -> Iterator[tuple[int, str]]:
    """The imports of files in the same directory, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        for name in {name.partition(".")[0] for name in names} - {"testbed"}:
            if (directory / f"{name}.py").exists() or _lies_in(name, directory):
                yield node.lineno, f"it imports {name!r}, a file beside it; {ONE_FILE}"


def _lies_in(name: str, directory: Path) -> bool:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    return any(place and Path(place).parent == directory for place in places)


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"; {ONE_FILE}"
    return f"; {HINT}" if isinstance(error, ImportError) else ""

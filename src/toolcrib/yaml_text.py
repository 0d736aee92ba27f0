"""YAML as Toolcrib reads it: what occurs twice, contains itself or is nested without end is refused, not guessed.

The library keeps the last of two equal keys without a word, so that a second `approvals:` further down would undo the
rules of the first.
"""

from typing import cast

import yaml
from yaml.reader import ReaderError

from toolcrib.jsonc import TextError
from toolcrib.limits import CLIENT_FILE_MAX_DEPTH

_MERGE = "tag:yaml.org,2002:merge"


def read_yaml(text: str, *, twice: bool = False) -> object:
    """The data of a text; nothing for an empty one. Raises `TextError`.

    With `twice` a key may occur twice, as in a file that belongs to another program.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {}, depth=0, twice=twice)
        return cast("object", loader.construct_document(node))  # pyright: ignore[reportUnknownMemberType]
    except ReaderError as error:
        raise TextError(f"the character #x{error.character:04x} may not stand here", error.position) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise TextError(str(problem), mark.index if mark else 0) from None
    except RecursionError:
        raise TextError("it is nested too deeply", 0) from None
    except TextError:
        raise
    except (ValueError, OverflowError):  # an escape such as "\Uffffffff"
        raise TextError("a character or a number in it is out of range", 0) from None


class _Loader(yaml.SafeLoader):
    """The library's, but a value that is not what its tag says is an error with a place, whatever Python raises."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return cast("object", super().construct_object(node, deep))  # pyright: ignore[reportUnknownMemberType]
        except TextError:
            raise
        except ValueError as error:  # a date such as 2026-02-31
            raise TextError(str(error), node.start_mark.index) from None
        except (ArithmeticError, AttributeError, LookupError):  # `!!bool maybe`
            kind = node.tag.rpartition(":")[2]
            raise TextError(f"this cannot be read as `!!{kind}`", node.start_mark.index) from None


def _check(node: yaml.Node, seen: dict[int, bool], *, depth: int, twice: bool) -> None:
    """Refuses keys that occur twice, and a part that contains itself.

    Every part is looked at once; `seen` says whether that is done.
    """
    start = node.start_mark.index
    if depth > CLIENT_FILE_MAX_DEPTH:
        raise TextError("it is nested too deeply", start)
    if id(node) in seen:
        if not seen[id(node)]:
            raise TextError("a part contains itself", start)
        return
    seen[id(node)] = False
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(item, seen, depth=depth + 1, twice=twice)
    elif isinstance(node, yaml.MappingNode):
        keys: set[tuple[str, str]] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE and not twice:
                named = (key.tag, key.value)
                if named in keys:
                    raise TextError(f"the key `{key.value}` occurs twice", key.start_mark.index)
                keys.add(named)
            _check(key, seen, depth=depth + 1, twice=twice)
            _check(value, seen, depth=depth + 1, twice=twice)
    seen[id(node)] = True

"""Puts Tupelo under uproot: some functions of uproot are replaced by ones that ask Tupelo first."""

import functools
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from .. import _core
from ..errors import InvalidArgumentError, MissingFileError, TupeloWarning
from . import _ntuples, _remote, _trees, _writing
from ._layouts import RefusedError
from ._pause import without_collections
from ._report import Call, log


class EngineWarning(TupeloWarning):
    """Tupelo could not do something that uproot did instead, or does not know this version of uproot."""


class _Hook(NamedTuple):
    """A function of uproot that is replaced."""

    module: str
    owner: str | None
    """The class that has it; None for a function of the module."""
    name: str
    parameters: str | None
    """Names of its parameters in the versions that are known; None where the replacement passes on any."""
    make: Callable[[Any], Any]
    """Makes the replacement from the original."""


_lock = threading.Lock()
_replaced: dict[_Hook, tuple[Any, Any]] = {}
"""The originals and their replacements."""
_warned: set[str] = set()


def warn_once(text: str) -> None:
    """Warns, unless it was said before."""
    with _lock:
        if text in _warned:
            return
        _warned.add(text)
    warnings.warn(text, EngineWarning, stacklevel=2)


def install() -> None:
    """Makes the installed uproot decode with Tupelo what Tupelo decodes identically, in this process.

    ``import tupelo.uproot`` calls it. It does nothing if the environment variable ``TUPELO_UPROOT`` is ``off``. A
    function of uproot whose signature is not the known one stays as it is, with a warning.

    Raises `tupelo.InvalidArgumentError` for other values of the variable than ``off`` and ``strict``.
    """
    if (mode := _mode()) == "off":
        return
    if mode not in ("", "strict"):
        raise InvalidArgumentError(f"expected TUPELO_UPROOT as 'strict' or 'off', not {mode!r}")
    for hook in _HOOKS:
        if hook in _replaced:
            continue
        import uproot

        owner = _owner(hook)
        original: Any = getattr(owner, hook.name, None)
        found = None if original is None else " ".join(inspect.signature(original).parameters)
        if found is None or hook.parameters not in (None, found):
            where = ".".join(filter(None, [hook.module, hook.owner, hook.name]))
            warn_once(
                f"uproot {uproot.__version__} is not known to Tupelo: {where} is missing or takes other arguments; "
                "uproot does what it does without Tupelo"
            )
            continue
        replacement = functools.wraps(original)(hook.make(original))
        setattr(owner, hook.name, replacement)
        _replaced[hook] = original, replacement


def uninstall() -> None:
    """Makes uproot decode by itself again."""
    for hook, (original, replacement) in list(_replaced.items()):
        # Another package may have replaced it since.
        if getattr(_owner(hook), hook.name, None) is replacement:
            setattr(_owner(hook), hook.name, original)
        del _replaced[hook]


def _owner(hook: _Hook) -> Any:
    try:
        module = import_module(hook.module)
    except ImportError:
        # Of another version.
        return None
    return module if hook.owner is None else getattr(module, hook.owner, None)


def _mode() -> str:
    return os.environ.get("TUPELO_UPROOT", "")


def fail(error: Exception, what: str) -> str:
    """The reason for leaving something to uproot after an error of Tupelo, which is shown once.

    Raises the error in strict mode.
    """
    if _mode() == "strict":
        raise error
    text = f"{type(error).__name__}: {error}"
    warn_once(f"{what} is left to uproot, because Tupelo fails: {text}")
    return text


def note(where: str, entries: tuple[int, int], served: int, passed: Mapping[str, list[str]]) -> None:
    """Adds a read to the report."""
    log.add(Call(where, *entries, served, {reason: tuple(names) for reason, names in passed.items()}))


def _tree_hook(original: Any) -> Any:
    def ranges_or_baskets_to_arrays(
        hasbranches: Any,
        ranges_or_baskets: Any,
        branchid_interpretation: Any,
        entry_start: int,
        entry_stop: int,
        decompression_executor: Any,
        interpretation_executor: Any,
        library: Any,
        arrays: Any,
        update_ranges_or_baskets: bool,
        interp_options: Any,
    ) -> None:
        executors = decompression_executor, interpretation_executor
        # uproot computes a cache key for each use, and there are many baskets.
        keys = {
            id(branch): branch.cache_key for branch, _, _ in {id(one[0]): one for one in ranges_or_baskets}.values()
        }
        wanted = {key: one[0] for one in ranges_or_baskets if (key := keys[id(one[0])]) not in arrays}
        entries = _basket_entries(ranges_or_baskets, keys) if update_ranges_or_baskets else {}
        interpretations = branchid_interpretation
        read = _trees.Read(
            hasbranches, wanted, interpretations, entry_start, entry_stop, library, interp_options, entries
        )
        served = _serve(read, executors) if wanted else {}
        arrays.update(served)
        if served:
            # In the caller's list: the next step of `iterate` looks at the baskets that are left.
            ranges_or_baskets[:] = [one for one in ranges_or_baskets if keys[id(one[0])] not in served]
        rest = {key: value for key, value in interpretations.items() if key not in served}
        if all(key in arrays for key in rest):
            return
        known = {key: array for key, array in arrays.items() if key in rest}
        original(
            hasbranches,
            ranges_or_baskets,
            rest,
            entry_start,
            entry_stop,
            *executors,
            library,
            known,
            update_ranges_or_baskets,
            interp_options,
        )
        arrays.update(known)

    return ranges_or_baskets_to_arrays


def _pause_hook(original: Any) -> Any:
    def paused(*args: Any, **options: Any) -> Any:
        with without_collections():
            return original(*args, **options)

    return paused


class _Kept(dict[str, Any]):
    """What is kept with an object of uproot, and not pickled with it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, ()


def _keys_hook(original: Any) -> Any:
    def keys_deep(hasbranches: Any) -> set[str]:
        # uproot asks all branches in each call: most of the time of a short read of a tree with many branches.
        kept = hasbranches.__dict__.setdefault("_tupelo_kept", _Kept())
        if "keys" not in kept:
            kept["keys"] = original(hasbranches)
        return set(kept["keys"])

    return keys_deep


def _basket_entries(ranges_or_baskets: Any, keys: Mapping[int, str]) -> dict[str, int]:
    """The number of entries in the baskets of each branch."""
    ends: dict[int, tuple[Any, int, int]] = {}
    for branch, number, _ in ranges_or_baskets:
        _, first, last = ends.get(id(branch), (branch, number, number))
        ends[id(branch)] = branch, min(first, number), max(last, number)
    return {
        keys[one]: branch.entry_offsets[last + 1] - branch.entry_offsets[first]
        for one, (branch, first, last) in ends.items()
    }


def _serve(read: "_trees.Read", executors: tuple[Any, Any]) -> dict[str, Any]:
    """What Tupelo reads of a call: arrays by cache key."""
    tree = read.hasbranches.tree
    where = f"{tree.file.file_path}:{tree.object_path}"
    passed: dict[str, list[str]] = {}
    plans: dict[str, Any] = {}
    handle: Any = None
    found: dict[str, Any] = {}

    def leave(key: str, reason: str) -> None:
        passed.setdefault(reason, []).append(read.branches[key].name)

    try:
        _trees.check_call(read, *executors)
        small = _trees.in_small_steps(read)
        handle = _trees.handle_of(read) if len(small) < len(read.branches) else None
    except RefusedError as error:
        passed[str(error)] = [branch.name for branch in read.branches.values()]
    except Exception as error:
        passed[fail(error, where)] = [branch.name for branch in read.branches.values()]
    else:
        for key in read.branches:
            if key in small:
                leave(key, "the steps are smaller than the baskets")
                continue
            try:
                plans[key] = _trees.plan_of(handle, read, key)
            except RefusedError as error:
                leave(key, str(error))
            except Exception as error:
                leave(key, fail(error, f"{where}: branch {read.branches[key].name!r}"))
        try:
            found = _trees.arrays_of(handle, read, plans) if plans else {}
        except Exception:
            # The others are read, without the branch that fails, which is not tried again.
            for key, plan in plans.items():
                try:
                    found |= _trees.arrays_of(handle, read, {key: plan})
                except Exception as error:
                    reason = fail(error, f"{where}: branch {read.branches[key].name!r}")
                    handle.plans[key, read.library.name] = plan.interpretation, reason
                    leave(key, reason)
    note(where, (read.entry_start, read.entry_stop), len(found), passed)
    return found


def _ntuple_hook(original: Any) -> Any:
    signature = inspect.signature(original)

    def arrays(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        fields = bound.arguments.pop("self")
        ntuple = fields.ntuple
        where = f"{ntuple.file.file_path}:{ntuple.object_path}"
        passed: dict[str, list[str]] = {}
        found: dict[str, Any] = {}
        patterns: dict[str, list[str]] = {}

        try:
            read = _ntuples.prepare(original, fields, bound.arguments)
            handle = _ntuples.handle_of(read)
        except RefusedError as error:
            note(where, (0, 0), 0, {str(error): [fields.name]})
            return original(*args, **options)
        except Exception as error:
            # Of wrong arguments too, which uproot reports.
            note(where, (0, 0), 0, {f"{type(error).__name__}: {error}": [fields.name]})
            return original(*args, **options)
        for name, column in read.columns.items():
            try:
                patterns[name] = _ntuples.patterns_of(handle, column)
            except RefusedError as error:
                passed.setdefault(str(error), []).append(name)
            except Exception as error:
                passed.setdefault(fail(error, f"{where}: field {name!r}"), []).append(name)
        try:
            found = _ntuples.contents_of(handle, read, patterns) if patterns else {}
        except Exception as error:
            passed.setdefault(fail(error, where), []).extend(patterns)
        note(where, (read.entry_start, read.entry_stop), len(found), passed)
        if not found:
            return original(*args, **options)
        _ntuples.remember(read)
        if rest := set(read.columns) - set(found):
            found |= _ntuples.rest_of(original, read, rest)
        return _ntuples.result_of(read, found)

    return arrays


def _open_hook(original: Any) -> Any:
    def hook_before_create_source(self: Any, **kwargs: Any) -> None:
        original(self, **kwargs)
        url = sys.modules["uproot._util"].regularize_path(self._file_path)
        if not isinstance(url, str):
            return
        try:
            _remote.prepare(url, self._options)
        except RefusedError:
            pass
        except MissingFileError:
            raise
        except Exception as error:
            if not _remote.can_uproot_open(url):
                raise
            fail(error, _core.display_name(url))
        else:
            self._options["handler"] = _remote.TupeloSource

    return hook_before_create_source


def _files_hook(original: Any) -> Any:
    def regularize_files_inner(
        files: Any, parse_colon: bool, counter: Any, HasBranches: Any, steps_allowed: bool, **options: Any
    ) -> Any:
        util = sys.modules["uproot._util"]
        url, name = util.regularize_path(files), None
        if isinstance(url, str):
            if parse_colon and isinstance(files, str):
                url, name = util.file_object_path_split(url)
            try:
                found = _remote.matching(url, options)
            except RefusedError:
                pass
            except Exception as error:
                if not _remote.can_uproot_open(url):
                    raise
                fail(error, _core.display_name(url))
            else:
                yield from ((one, name, None) for one in found)
                return
        yield from original(files, parse_colon, counter, HasBranches, steps_allowed, **options)

    return regularize_files_inner


def _compress_hook(original: Any) -> Any:
    def compress(data: Any, compression: Any) -> Any:
        try:
            return _writing.compressed(data, compression)
        except RefusedError:
            pass
        except Exception as error:
            fail(error, "compression with zlib")
        return original(data, compression)

    return compress


def _extend_hook(original: Any) -> Any:
    def extend(self: Any, file: Any, sink: Any, data: Any) -> None:
        writes = _writing.JoinedWrites(sink)
        original(self, file, writes, data)
        writes.flush()

    return extend


_HOOKS = (
    _Hook(
        "uproot.behaviors.TBranch",
        None,
        "_ranges_or_baskets_to_arrays",
        "hasbranches ranges_or_baskets branchid_interpretation entry_start entry_stop decompression_executor "
        "interpretation_executor library arrays update_ranges_or_baskets interp_options",
        _tree_hook,
    ),
    _Hook(
        "uproot.behaviors.RNTuple",
        "HasFields",
        "arrays",
        "self expressions cut filter_name filter_typename filter_field aliases language entry_start entry_stop "
        "decompression_executor array_cache library backend interpreter ak_add_doc how virtual access_log "
        "interpretation_executor filter_branch",
        _ntuple_hook,
    ),
    _Hook("uproot.behaviors.TBranch", None, "_keys_deep", "hasbranches", _keys_hook),
    _Hook("uproot.behaviors.TBranch", "HasBranches", "arrays", None, _pause_hook),
    _Hook("uproot.reading", "ReadOnlyKey", "get", None, _pause_hook),
    # uproot asks for the same names for each branch and each of its bases.
    _Hook("uproot.model", None, "classname_regularize", "classname", functools.lru_cache(maxsize=1024)),
    _Hook("uproot.reading", "ReadOnlyFile", "hook_before_create_source", "self kwargs", _open_hook),
    _Hook(
        "uproot._util",
        None,
        "_regularize_files_inner",
        "files parse_colon counter HasBranches steps_allowed options",
        _files_hook,
    ),
    _Hook("uproot.compression", None, "compress", "data compression", _compress_hook),
    _Hook("uproot.writing._cascadentuple", "NTuple", "extend", "self file sink data", _extend_hook),
)

"""uproot's module of this name: what is raised."""

from ..errors import NotFoundError as KeyInFileError

__all__ = ["KeyInFileError"]

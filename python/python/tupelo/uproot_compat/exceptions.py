"""What is raised, by uproot's names."""

from ..errors import NotFoundError as KeyInFileError

__all__ = ["KeyInFileError"]

"""uproot's module of this name: codecs and their levels."""

from ._options import LZ4, LZMA, ZLIB, ZSTD, Compression

__all__ = ["LZ4", "LZMA", "ZLIB", "ZSTD", "Compression"]

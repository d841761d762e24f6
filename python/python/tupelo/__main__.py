"""``python -m tupelo`` is the command ``tupelo``."""

from ._base.command import main

if __name__ == "__main__":
    main()

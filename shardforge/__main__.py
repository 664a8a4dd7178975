"""``python -m shardforge``."""

from shardforge.cli import main

if __name__ == "__main__":
    main(prog_name="shardforge")

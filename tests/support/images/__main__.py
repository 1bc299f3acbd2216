"""`python -m tests.support.images build|path`."""

from __future__ import annotations

import argparse
import sys

from tests.support.images.builder import Builder, ImageError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.images")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="build the images if they are missing")
    verbs.add_parser("path", help="print the folder that they are in")
    arguments = parser.parse_args()
    builder = Builder()
    if arguments.verb == "path":
        print(builder.home)
        return 0
    try:
        builder.ensure()
    except ImageError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

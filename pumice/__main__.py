"""`python -m pumice`: the same as the `pumice` command."""

import sys

from pumice.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m predsession``."""

import sys

from predsession.cli import main

if __name__ == "__main__":
    sys.exit(main())

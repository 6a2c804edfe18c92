"""``python -m memx``."""

from memx.cli.main import main

if __name__ == "__main__":
    main()

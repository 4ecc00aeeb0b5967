"""``python -m tressette`` is ``tressette``."""

from tressette.cli import main

if __name__ == "__main__":
    main()

"""Settings for all tests: nothing is timed, a shared machine may be slow at any moment."""

from hypothesis import settings

settings.register_profile("tressette", deadline=None)
settings.load_profile("tressette")

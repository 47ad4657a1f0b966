"""For every test and doctest of the checkout; what tests alone share is in tests/conftest.py."""

pytest_plugins = ("tests.guard",)

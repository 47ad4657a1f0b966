"""The errors that weakspot raises.

Every message says what was expected, what came, and what to do. The command line prints these without a trace-back
and exits with code 2; any other exception is a defect of weakspot.
"""


class WeakspotError(Exception):
    """Anything the user can put right."""


class SubjectError(WeakspotError):
    """The model under test does not do what was said of it."""


class DataError(WeakspotError):
    """A sample, target or data source cannot be used."""


class ConfigError(WeakspotError):
    """An option or configuration entry is wrong."""


class RunError(WeakspotError):
    """A run folder cannot be read or written."""


class Damaged(RunError):  # noqa: N818 - it is the Run that is wrong
    """What lies in a Run is not as it was written; `reason` says what of it."""

    def __init__(self, damaged: object, reason: str, advice: str = "examine again"):
        super().__init__(f"{damaged} is damaged: {reason}; {advice}")
        self.reason = reason


class RunBusy(RunError):  # noqa: N818 - nothing is wrong with it
    """Another process is writing to the Run."""


class ProbeError(WeakspotError):
    """A probe broke the contract between probes and the frame."""


class BadSample(DataError):  # noqa: N818 - the sample is what it is about
    """One sample cannot be used; `sample` is its id, so that it can be left out and listed."""

    def __init__(self, sample: str, message: str):
        super().__init__(message)
        self.sample = sample

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        return type(self), (self.sample, str(self))

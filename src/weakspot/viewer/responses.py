"""Responses: JSON without NaN, pictures that the browser may cache, and errors as sentences."""

import json
import math
import sys
import traceback
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from weakspot.core.errors import RunError, WeakspotError
from weakspot.viewer.reading import NotThereError


class Png(Response):
    """A picture."""

    media_type = "image/png"


class Svg(Response):
    """A drawing."""

    media_type = "image/svg+xml"


class Gif(Response):
    """An animation."""

    media_type = "image/gif"


class CsvFile(Response):
    """A table as a file."""

    media_type = "text/csv"


class Numbers(Response):
    """Numbers one after another, little-endian."""

    media_type = "application/octet-stream"


_SAID = {"application/json": {"schema": {"type": "object", "properties": {"error": {"type": "string"}}}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request makes no sense.", "content": _SAID},
    403: {"description": "The token is missing, or the request comes from another page.", "content": _SAID},
    404: {"description": "The Run has no such thing.", "content": _SAID},
    409: {"description": "Part of the Run is damaged, or has changed.", "content": _SAID},
    413: {"description": "The request is too large.", "content": _SAID},
    414: {"description": "The address is too long.", "content": _SAID},
    422: {"description": "A parameter has a wrong type or value.", "content": _SAID},
}
"""What every part of the API may answer besides."""
NO_STORE = {"Cache-Control": "no-store"}
FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}
_DEFECT = "the viewer failed, which is a defect of weakspot: its terminal shows the error"


def as_json(value: Any, status: int = 200) -> Response:
    """JSON as a response; numbers that do not exist are null."""
    text = json.dumps(value, default=_plain, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Response(text, status, NO_STORE, "application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return numbers(value)
    if isinstance(value, np.generic):
        return numbers(np.asarray(value))
    return str(value)


def numbers(values: np.ndarray) -> Any:
    """An array as lists, with None for what is not finite.

    >>> numbers(np.array([1.5, np.nan]))
    [1.5, None]
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return np.where(np.isfinite(values), values.astype(object), np.array(None)).tolist()
    return values.tolist()


def finite(value: Any) -> Any:
    """A number that JSON can hold; None for others, anything else as it is."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def picture(content: bytes, *, kind: str = "png", versioned: bool = True) -> Response:
    """A picture; the browser caches it without limit if its address names its version."""
    return Response(content, headers=FOR_GOOD if versioned else NO_STORE, media_type=f"image/{kind}")


def add_error_answers(app: FastAPI) -> None:
    """Every error as `{"error": sentence}`; a defect of weakspot also goes to the terminal, with its traceback."""
    app.add_exception_handler(WeakspotError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def failed(path: str, error: Exception) -> Response:
    """Tell the terminal where it happened, and the browser no more than that it did."""
    print(f"weakspot: the viewer failed at {path!r}:", file=sys.stderr)
    traceback.print_exception(error)
    return as_json({"error": _DEFECT}, 500)


def _refused(_: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotThereError) else 409 if isinstance(error, RunError) else 400
    return as_json({"error": str(error)}, status)


def _invalid(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][1:]) or "the request"
    return as_json({"error": f"{name}: {first['msg']}"}, 422)


def _http(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    answer = as_json({"error": str(error.detail)}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer

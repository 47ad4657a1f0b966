"""Sizes in an archive of `torch.export`: arithmetic on named sizes, as torch writes it.

torch hands these expressions to sympy, and sympy evaluates them as Python. So they are parsed here without being
evaluated, every part must be one of the few that sizes need, and torch gets what is rewritten from these parts.
"""

import ast
import re
import warnings

_LONGEST = 20_000
_LARGEST = 2**64
_POWER, _NESTED_POWERS = 8, 2
"""Larger powers of large numbers would fill the memory."""
_CHARACTERS = re.compile(r"[A-Za-z0-9_ +\-*/%(),=.']*")
_SYMBOL = re.compile(r"(s|u|zf|zuf)\d{1,6}")
_FLOAT = re.compile(r"-?\d{1,40}(\.\d{0,40})?(e[+-]?\d{1,3})?")
_CONSTANTS = frozenset("true false oo int_oo".split())
_ASSUMPTIONS = frozenset("integer real positive nonnegative negative nonzero finite even odd".split())
_POWERS = frozenset("Pow PowByNatural FloatPow".split())
_FUNCTIONS = _POWERS | frozenset(
    "Add Mul Mod Max Min Abs floor ceiling Rational FloorDiv CeilDiv CleanDiv PythonMod IntTrueDiv FloatTrueDiv "
    "ToFloat TruncToInt TruncToFloat FloorToInt CeilToInt RoundToInt RoundDecimal Identity Where And Or Not "
    "IntInfinity NegativeIntInfinity Eq Ne Lt Le Gt Ge Equality Unequality LessThan StrictLessThan GreaterThan "
    "StrictGreaterThan".split()
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)


def rewritten_expression(text: str) -> str:
    """The same expression, written from its parts. A ValueError where one of them is not arithmetic on sizes.

    >>> rewritten_expression("Add(Symbol('s77', positive=True, integer=True), Integer(-1))")
    "Add(Symbol('s77', positive=True, integer=True), Integer(-1))"
    >>> rewritten_expression("2*s39 + 1")
    '2 * s39 + 1'
    >>> rewritten_expression("exit(1)")
    Traceback (most recent call last):
        ...
    ValueError: exit is not a part of sizes
    """
    if len(text) > _LONGEST or not _CHARACTERS.fullmatch(text):
        raise ValueError(f"longer than {_LONGEST} characters, or with others than sizes need")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python about numbers that run into words
            parsed = ast.parse(text.strip(), mode="eval").body
        _check(parsed, powers=0)
        return ast.unparse(parsed)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not an expression: {type(error).__name__}") from error


def _check(node: ast.expr, powers: int) -> None:
    match node:
        case ast.Constant(value=int(number)) if abs(number) < _LARGEST:
            return
        case ast.Name(id=name) if name in _CONSTANTS or _SYMBOL.fullmatch(name):
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            _check(inner, powers)
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _ARITHMETIC):
            _check(left, powers)
            _check(right, powers)
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            _check_power(base, exponent, powers)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=options):
            _check_call(name, arguments, options, powers)
        case _:
            raise ValueError(f"{type(node).__name__} is not a part of sizes")


def _check_call(name: str, arguments: list[ast.expr], options: list[ast.keyword], powers: int) -> None:
    match name, arguments:
        case "Symbol", [ast.Constant(value=str(symbol))] if _SYMBOL.fullmatch(symbol):
            allowed = all(option.arg in _ASSUMPTIONS and _is_truth(option.value) for option in options)
        case "Float", [ast.Constant(value=str(number))] if _FLOAT.fullmatch(number):
            allowed = [(option.arg, ast.unparse(option.value)) for option in options] in ([], [("precision", "53")])
        case "Integer", [number]:
            allowed = not options and _is_small(number, _LARGEST)
        case _:
            allowed = not options and name in _FUNCTIONS
            if name in _POWERS and allowed and len(arguments) == 2:
                return _check_power(arguments[0], arguments[1], powers)
            for argument in arguments if allowed else ():
                _check(argument, powers)
    if not allowed:
        raise ValueError(f"{name} is not a part of sizes")
    return None


def _check_power(base: ast.expr, exponent: ast.expr, powers: int) -> None:
    if powers >= _NESTED_POWERS:
        raise ValueError(f"more than {_NESTED_POWERS} powers in each other")
    match exponent:
        case ast.Call(func=ast.Name(id="Integer"), args=[number], keywords=[]):
            allowed = _is_small(number, _POWER)
        case ast.Call(func=ast.Name(id="Rational"), args=[above, below], keywords=[]):
            allowed = _is_small(above, _POWER) and _is_small(below, _POWER)
        case ast.Call(func=ast.Name(id="Float"), args=[ast.Constant(value=str(number))]):
            _check(exponent, powers)
            allowed = abs(float(number)) <= _POWER
        case _:
            allowed = _is_small(exponent, _POWER)
    if not allowed:
        raise ValueError(f"a power that is not a number up to {_POWER}")
    _check(base, powers + 1)


def _is_small(node: ast.expr, largest: int) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value <= largest


def _is_truth(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is bool

"""The lists of what a graph from a file may compute: what networks need is in them, what reaches further is not."""

import pytest
import torch

from weakspot.models.operators import FUNCTIONS, OPERATORS, UnknownOperator, check_operator
from weakspot.models.size_expressions import rewritten_expression

SIZE = "Symbol('s77', positive=True, integer=True)"


def test_all_operators_are_torchs():
    assert [name for name in sorted(OPERATORS) if not hasattr(torch.ops.aten, name)] == []


def test_the_core_of_aten_is_there_but_for_gradients_random_numbers_and_foreign_memory():
    names = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("aten::")
    }
    versions = [(name, getattr(torch.ops.aten, name)) for name in names if hasattr(torch.ops.aten, name)]
    core = {
        name
        for name, packet in versions
        for version in packet.overloads()
        if torch.Tag.core in getattr(packet, version).tags
    }
    assert len(core) > 150
    left_out = {name for name in core - OPERATORS if not name.endswith("_backward")}
    assert left_out == {"rand", "randn", "randperm", "resize_", "_embedding_bag"}


@pytest.mark.parametrize(
    "name",
    ["from_file", "save", "warn", "_print", "manual_seed", "seed", "set_", "set_data", "resize_", "resize_as_",
     "random_", "normal_", "rand", "randn_like", "bernoulli", "multinomial", "format", "_index_put_impl_",
     "__getitem__"],
)  # fmt: skip
def test_what_reaches_further_is_not_there(name):
    assert name not in OPERATORS
    for version in getattr(torch.ops.aten, name).overloads() if hasattr(torch.ops.aten, name) else ["default"]:
        with pytest.raises(UnknownOperator, match=name):
            check_operator(f"torch.ops.aten.{name}.{version}")


@pytest.mark.parametrize(
    "target",
    ["torch.ops.aten.add.out", "torch.ops.aten.linalg_svd.U", "torch.ops.aten.add.str", "torch.ops.aten.relu",
     "torch.ops.aten.relu.nothing", "torch.ops.aten.relu.default\n", "torch.ops.aten.relu.op", "relu", "",
     "torch.ops.quantized.add.default", "torch.ops.higher_order.auto_functionalized"],
)  # fmt: skip
def test_other_targets_are_refused(target):
    with pytest.raises(UnknownOperator):
        check_operator(target)


@pytest.mark.parametrize(
    "target",
    [*sorted(FUNCTIONS), "torch.ops.aten.add.Tensor", "torch.ops.aten.add_.Tensor", "torch.ops.aten.__and__.Tensor"],
)
def test_what_is_there(target):
    check_operator(target)


@pytest.mark.parametrize(
    "text",
    [
        SIZE,
        f"Mul(Integer(2), {SIZE})",
        f"Add(FloorDiv(Add({SIZE}, Integer(-1)), Integer(2)), Integer(1))",
        f"Max(Integer(1), TruncToInt(Mul(Float('1.5', precision=53), ToFloat({SIZE}))))",
        f"Pow({SIZE}, Integer(2))",
        f"StrictLessThan({SIZE}, Integer(5))",
        "2 * s39 + s7 % 3 - -s1 // 4",
        "s7 ** 2",
        "true",
    ],
)
def test_sizes_are_written_as_they_were(text):
    assert rewritten_expression(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "exit()", "eval('1')", "Symbol('os')", "Symbol('s7').name", "Symbol('s7')('x')",
        "Symbol(s7)", "Symbol('s7', cls=True)", "Symbol('s7', positive=s1)", "Symbol('s99999999')", "x", "s7.args",
        "s7[0]", "[s7]", "{s7}", "lambda: 1", "(s1 := 2)", "1 if s1 else 2", "s1 and s2", "f'{s1}'", "'s1'",
        "Add(*s1)", "Add(**s1)", "Add(s1, evaluate=s2)", "Function('f')", "S(1)", "Integer(2 ** 99)", "Integer('1')",
        "10 ** 99", "Pow(Integer(9), Symbol('s1'))", "Pow(Integer(9), Float('99.0', precision=53))",
        "Float('1.5', precision=0)", "Float('1.5', precision=10**9)", "Float('inf')", "1.5", "s1 << 9", "1" * 30,
        "(" * 150, "-" * 15_000 + "1", "s1 +" * 6_000 + "1", "", "s1; s2", "s1\n", "ｓ1",
    ],
)  # fmt: skip
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        rewritten_expression(text)

"""Every name of a spec replaced by another one, part by part and symbol by symbol: what it says stays the same."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from blockgraph.equation import parse_equations
from blockgraph.explain import main_text
from blockgraph.source import parse

Data = dict[str, Any]


def written_out(path: str) -> Data:
    """The plain data of the long form of a spec."""
    text, _ = main_text(path, {})
    data = parse(text, "long.yaml").data
    assert isinstance(data, dict)
    return data


def renamed(data: Data) -> Data:
    """The long form with all names replaced, and whatever has no order the other way round."""
    return _Renamer(data).spec()


class _Renamer:
    def __init__(self, data: Data) -> None:
        self.data = data
        self.modules = {**data.get("blocks", {}), **{key: data[key] for key in ("block", "model") if key in data}}
        axes = [axis for module in self.modules.values() for one in _inputs(module).values() for axis in _axes(one)]
        given = [*data.get("dims", {}), *data.get("constants", {}), *(name for axis in axes for name in _names(axis))]
        self.symbols = {name: f"Q{n}_{name[::-1]}" for n, name in enumerate(dict.fromkeys(given))}
        main = "" if "model" in data or "block" in data else "block"  # the main block is known by this name
        self.blocks = {name: name if name == main else f"z_{name[::-1]}" for name in data.get("blocks", {})}

    def spec(self) -> Data:
        new: Data = {"name": "another name", "source": "another source"}
        new["dims"] = {self.symbols[k]: self.value(v) for k, v in reversed(self.data.get("dims", {}).items())}
        constants = self.data.get("constants", {})
        new["constants"] = {self.symbols[name]: self.value(value) for name, value in constants.items()}
        blocks = self.data.get("blocks", {})
        new["blocks"] = {self.blocks[name]: self.module(one) for name, one in reversed(blocks.items())}
        for key in ("block", "model"):
            if key in self.data:
                new[key] = self.module(self.data[key])
        return {key: value for key, value in new.items() if value}

    def module(self, module: Data) -> Data:
        parts, params = module.get("parts", {}), module.get("params", {})
        equations = module.get("equations", [])
        text = "\n".join(equations) if isinstance(equations, list) else equations
        lines = [" ".join(one.text.split()) for one in parse_equations(text).equations]
        rename = _Equations(self, parts, params, module, lines)
        new: Data = {"inputs": {_name(name): self.value(one) for name, one in _inputs(module).items()}}
        new["outputs"] = [_name(name) for name in module["outputs"]] if "outputs" in module else None
        new["params"] = {_name(name): self.value(one) for name, one in reversed(params.items())}
        new["parts"] = {_name(name): self.use(one) for name, one in reversed(parts.items())}
        new["equations"] = [rename.line(line) for line in lines]
        new["causal"] = module.get("causal")
        return {key: value for key, value in new.items() if value}

    def use(self, use: Any) -> Any:
        if isinstance(use, str):
            return self.blocks.get(use, use)
        if isinstance(use, list):
            return [self.use(one) for one in use]
        known = {"kind": self.use, "of": self.use}
        new = {key: known.get(key, self.value)(value) for key, value in use.items() if key != "set"}
        if "set" in use:
            new["set"] = {self.symbols[name]: self.value(value) for name, value in use["set"].items()}
        return new

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if isinstance(value, dict) and "kind" in value:
            return self.use(value)
        if isinstance(value, dict):
            return {key: self.value(one) for key, one in value.items()}
        if not isinstance(value, str):
            return value
        try:
            tree = ast.parse(value, mode="eval")
        except SyntaxError:
            return value
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                node.id = self.symbols.get(node.id, self.blocks.get(node.id, node.id))
        return ast.unparse(tree)


class _Equations(ast.NodeTransformer):
    """Renames in the equations of one module."""

    def __init__(self, spec: _Renamer, parts: Data, params: Data, module: Data, lines: list[str]) -> None:
        self.spec, self.parts = spec, parts
        targets = {
            name.id
            for line in lines
            for name in ast.walk(_assign(line))
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        self.own = {*targets, *params, *parts, *_inputs(module)}

    def line(self, line: str) -> str:
        return ast.unparse(self.visit(_assign(line)))

    def is_block(self, name: str) -> bool:
        use = self.parts.get(name)
        kind = use if isinstance(use, str) or use is None else use["kind"]
        stacked = isinstance(use, Mapping) and kind == "stack"
        return kind in self.spec.blocks or stacked

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = _name(node.id) if node.id in self.own else self.spec.symbols.get(node.id, node.id)
        return ast.Name(new, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        assert not isinstance(node.value, ast.Name) or node.attr == "T" or not self.is_block(node.value.id)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Name)
        callee = node.func.id
        node.args = [self.visit(one) for one in node.args]
        for one in node.keywords:
            one.value = self.visit(one.value)
            if self.is_block(callee) and one.arg is not None:
                one.arg = _name(one.arg)
        node.func.id = _name(callee) if callee in self.parts else callee
        return node


def _assign(line: str) -> ast.Module:
    return ast.parse(line)


def _inputs(module: Data) -> Data:
    return module.get("inputs") or {"x": ["B", "T", "C"]}


def _axes(one: Any) -> list[Any]:
    return one if isinstance(one, list) else next(value for key, value in one.items() if key in ("ids", "bool"))


def _names(axis: Any) -> list[str]:
    return [node.id for node in ast.walk(ast.parse(str(axis), mode="eval")) if isinstance(node, ast.Name)]


def _name(name: str) -> str:
    return f"n_{name[::-1]}"

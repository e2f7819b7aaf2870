"""The dataclasses that are quick to define behave as those of the standard library; each promise is asked of both."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest

from blockgraph import records

Maker = Callable[..., Any]
MAKERS = {"standard": dataclasses.dataclass, "quick": records.dataclass}


@pytest.fixture(params=MAKERS)
def dataclass(request: pytest.FixtureRequest) -> Maker:
    return MAKERS[request.param]


@records.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float = 0.5


@records.dataclass(slots=True)
class Bag:
    items: list[int] = field(default_factory=list)


def test_the_quick_one_is_not_that_of_the_standard_library() -> None:
    assert records.dataclass is not dataclasses.dataclass


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("frozen", [False, True])
def test_fields_defaults_and_text(dataclass: Maker, frozen: bool, slots: bool) -> None:
    @dataclass(frozen=frozen, slots=slots)
    class One:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=3, repr=False)
        fact: ClassVar[int] = 7

    made = One(1, c=[2])
    assert (made.a, made.b, made.c, made.d, made.fact) == (1, "b", [2], 3, 7)
    assert One(1).c is not One(1).c
    assert repr(made) == f"{One.__qualname__}(a=1, b='b', c=[2])"
    assert [one.name for one in fields(One)] == ["a", "b", "c", "d"]
    assert One.__match_args__ == ("a", "b", "c", "d")
    assert is_dataclass(made)
    assert replace(made, a=5) == One(5, c=[2])
    assert hasattr(made, "__dict__") != slots
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        One()
    with pytest.raises(TypeError, match="unexpected keyword argument 'e'"):
        One(1, e=2)


def test_equality_is_that_of_the_compared_fields_and_of_the_class(dataclass: Maker) -> None:
    @dataclass(frozen=True, slots=True)
    class One:
        a: float
        b: int = field(default=0, compare=False)

    @dataclass(frozen=True, slots=True)
    class Other:
        a: float
        b: int = 0

    nan = float("nan")
    assert One(1, 2) == One(1, 3) != One(2, 3)
    assert One(1) != Other(1)
    assert One(nan) == One(nan)
    assert hash(One(1, 2)) == hash(One(1, 3))
    assert {One(1, 2), One(1, 3), One(4)} == {One(1), One(4)}


def test_what_can_change_has_no_hash(dataclass: Maker) -> None:
    @dataclass(slots=True)
    class One:
        a: int

    one = One(1)
    one.a = 2
    assert one == One(2)
    with pytest.raises(TypeError, match="unhashable type: 'One'"):
        hash(one)


def test_without_eq_objects_are_themselves_only(dataclass: Maker) -> None:
    @dataclass(frozen=True, eq=False)
    class One:
        a: int

    one = One(1)
    assert one != One(1)
    assert hash(one) == hash(one)


@pytest.mark.parametrize("slots", [False, True])
def test_what_is_frozen_can_neither_be_set_nor_deleted(dataclass: Maker, slots: bool) -> None:
    @dataclass(frozen=True, slots=slots)
    class One:
        a: int

    one = One(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del one.a
    assert one.a == 1


def test_a_method_of_the_class_itself_stays(dataclass: Maker) -> None:
    @dataclass(frozen=True)
    class One:
        a: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        @cached_property
        def twice(self) -> int:
            return 2 * self.a

    assert (repr(One(1)), hash(One(1)), One(1) == One(2), One(4).twice) == ("mine", 5, True, 8)


def test_a_subclass_adds_fields_and_may_change_a_default(dataclass: Maker) -> None:
    @dataclass(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 1

    @dataclass(frozen=True, slots=True)
    class Sub(Base):
        b: int = 2
        c: int = 3

    assert (Sub(0).a, Sub(0).b, Sub(0).c) == (0, 2, 3)
    assert [one.name for one in fields(Sub)] == ["a", "b", "c"]
    assert Sub(0) != Base(0, 2)


def test_a_bare_subclass_is_a_dataclass_of_its_own(dataclass: Maker) -> None:
    @dataclass(frozen=True)
    class Base:
        a: int = 1

    class Sub(Base):
        pass

    assert Sub() == Sub(1) != Base()
    assert repr(Sub(2)) == f"{Sub.__qualname__}(a=2)"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        Sub().a = 4


@pytest.mark.parametrize(("base", "sub"), [("standard", "quick"), ("quick", "standard")])
def test_the_two_can_inherit_from_each_other(base: str, sub: str) -> None:
    @MAKERS[base](frozen=True)
    class Base:
        a: int

    @MAKERS[sub](frozen=True)
    class Sub(Base):
        b: int = 2

    assert Sub(1) == Sub(1, 2)
    assert replace(Sub(1), b=3).b == 3
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'b'"):
        Sub(1).b = 4


def test_after_init_runs_last(dataclass: Maker) -> None:
    @dataclass
    class One:
        a: int
        b: int = 0

        def __post_init__(self) -> None:
            self.b = self.a + 1

    assert One(1).b == 2


def test_an_abstract_class_stays_abstract(dataclass: Maker) -> None:
    @dataclass(slots=True)
    class Base(ABC):
        a: int

        @abstractmethod
        def work(self) -> int: ...

    @dataclass(slots=True)
    class Sub(Base):
        def work(self) -> int:
            return self.a

    assert Sub(3).work() == 3
    with pytest.raises(TypeError, match="Can't instantiate abstract class Base"):
        Base(1)


def test_what_is_rare_comes_from_the_standard_library(dataclass: Maker) -> None:
    @dataclass(frozen=True, order=True)
    class Ordered:
        a: int

    @dataclass
    class Inner:
        a: int
        b: int = field(init=False, default=4)

    @dataclass
    class Outer(Inner):
        c: int = 5

    assert Ordered(1) < Ordered(2)
    assert (Inner(1).b, Outer(1, 6).b, Outer(1, 6).c) == (4, 4, 6)
    with pytest.raises(ValueError, match="mutable default <class 'list'> for field a"):

        @dataclass
        class Wrong:
            a: list[int] = []  # noqa: RUF012


@pytest.mark.parametrize("made", [Point(1), Bag([1, 2])])
def test_copies_and_pickles_are_equal(made: Any) -> None:
    for twin in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert twin == made
        assert twin is not made

"""No statement crosses labs by accident: one that touches a lab's rows has to name the lab.

Checked where statements are run, for every statement once: a SELECT, UPDATE or DELETE on a table with a `lab_id` (or on
turns, which belong to their episode's lab) must compare `lab_id` with a value in its WHERE. What is for the operator or
the server itself, and means all labs, says so with `across_labs(statement)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from weakref import WeakSet

from sqlalchemy import ColumnElement, Connection, Engine, Executable, Table, event
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.dml import Delete, Update
from sqlalchemy.sql.elements import BinaryExpression, BindParameter
from sqlalchemy.sql.expression import Select

from reward_server.store.tables import metadata

MARK = "across_labs"
LAB = "lab_id"
OWNED = frozenset(table.name for table in metadata.tables.values() if LAB in table.c) | {"turn"}
"""Tables whose rows are a lab's."""

S = TypeVar("S", bound=Executable)
_seen: WeakSet[Executable] = WeakSet()


def across_labs(statement: S) -> S:
    """Mark a statement that means the rows of all labs."""
    return statement.execution_options(**{MARK: True})


def guard(engine: Engine) -> None:
    """Refuse statements on this engine that forget the lab."""

    @event.listens_for(engine, "before_execute")
    def look(_connection: Connection, statement: Executable, _many: Any, _one: Any, options: Any) -> None:
        if isinstance(statement, Select | Update | Delete) and statement not in _seen:
            if not options.get(MARK):
                require_lab(statement)
            _seen.add(statement)


def require_lab(statement: Select[Any] | Update | Delete) -> None:
    """`RuntimeError` if it could reach rows of more labs than one."""
    for select in _parts(statement):
        if _owned(select) and not any(_names_lab(clause) for clause in _where(select)):
            raise RuntimeError(f"a statement on {', '.join(sorted(_owned(select)))} names no lab; see store.isolation")


def _parts(statement: Select[Any] | Update | Delete) -> Iterable[Select[Any] | Update | Delete]:
    yield statement
    for element in visitors.iterate(statement):
        if isinstance(element, Select) and element is not statement:
            yield element


def _owned(part: Select[Any] | Update | Delete) -> set[str]:
    tables: set[str] = set()
    for source in part.get_final_froms() if isinstance(part, Select) else [part.table]:
        tables |= (
            {element.name for element in visitors.iterate(source) if isinstance(element, Table)}
            if _is_plain(source)
            else set()
        )
    return tables & OWNED


def _is_plain(source: Any) -> bool:
    # A subquery is a part of its own.
    return not any(isinstance(element, Select) for element in visitors.iterate(source))


def _where(part: Select[Any] | Update | Delete) -> Iterable[ColumnElement[Any]]:
    clause = part.whereclause
    if clause is None:
        return ()
    # Of what is joined by AND, each condition holds; inside an OR, none need.
    return clause.clauses if getattr(clause, "operator", None) is operators.and_ else (clause,)


def _names_lab(clause: ColumnElement[Any]) -> bool:
    return (
        isinstance(clause, BinaryExpression)
        and clause.operator is operators.eq
        and getattr(clause.left, "name", None) == LAB
        and isinstance(clause.right, BindParameter)
    )

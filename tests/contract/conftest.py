"""A test of the contract is asked of every instance."""

from __future__ import annotations

import inspect

import pytest

from tests.contract.base import Every, case


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """In a loop: ten thousand tests of a few milliseconds each would take longer to hand out than to run.

    With --quick, of the first instance alone.
    """
    __tracebackhide__ = True
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    every = {name: value for name, value in given.items() if isinstance(value, Every)}
    for name, instances in every.items():
        asked = list(instances.items())[: 1 if pyfuncitem.config.getoption("--quick") else None]
        assert asked, f"no {name} to ask"
        for label, instance in asked:
            with case(**{name: label}):
                pyfuncitem.obj(**given | {name: instance})
    return bool(every) or None

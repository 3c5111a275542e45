"""The names that `import ramherd` offers, and the flags that settings become."""

import inspect

import pytest

import ramherd
from ramherd.client.run_jobs import make_argv
from ramherd.core import errors


def test_each_name_that_is_offered_is_there() -> None:
    """`dir` lists them, and `from ramherd import *` gets them."""
    found = {name: getattr(ramherd, name) for name in ramherd.__all__}

    assert set(found) < set(dir(ramherd))
    assert {name for name, value in found.items() if value is None} == set()
    assert inspect.iscoroutinefunction(found["run_async"])
    with pytest.raises(AttributeError, match="'ramherd' has no attribute 'runn'"):
        _ = ramherd.runn


def test_every_error_of_a_script_is_one_of_ours() -> None:
    """One class catches all."""
    offered = [getattr(ramherd, name) for name in ramherd.__all__ if hasattr(errors, name)]

    assert len(offered) > 5
    assert all(issubclass(error, ramherd.RamherdError) for error in offered)


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"budget": "2GiB", "max_parallel": 3}, ["--budget=2GiB", "--max-parallel=3"]),
        ({"budget": 3 << 20, "max_parallel": 3}, ["--budget=3145728B", "--max-parallel=3"]),
        ({"budget": None}, []),
        ({"notify": True, "no_wait": True}, ["--notify", "--no-wait"]),
        ({"notify": False, "no_wait": False}, ["--no-notify", "--wait"]),
        ({"pass_env": ["PATH", "HOME"]}, ["--pass-env=PATH,HOME"]),
    ],
)
def test_a_setting_is_a_flag(settings: dict[str, object], flags: list[str]) -> None:
    """Of the same name as on the command line."""
    argv = make_argv("/src", own=True, settings=settings)

    assert argv[-len(flags) - 2 :] == ["--own", "--cwd=/src", *flags]

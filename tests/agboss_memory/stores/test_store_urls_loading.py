"""What loading the contract or opening a store by its URL loads: no more than is asked for."""

import subprocess
import sys

import pytest

SHOW = "import sys; print(sorted(m for m in ('agboss_memory.stores.memory', 'agboss_memory.stores.sqlite') if m in sys.modules))"


@pytest.mark.parametrize(
    ("program", "loaded"),
    [
        ("import agboss_memory.stores.contract", []),
        ("from agboss_memory import Store, dump_thread, open_store", []),
        ("from agboss_memory.stores import open_store; open_store('memory://')", ["agboss_memory.stores.memory"]),
        ("from agboss_memory.stores import open_store; open_store('sqlite:///x.db')", ["agboss_memory.stores.sqlite"]),
    ],
)
def test_a_store_is_loaded_when_it_is_asked_for(program: str, loaded: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", f"{program}\n{SHOW}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(loaded)

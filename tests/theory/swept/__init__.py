"""How every public name of theory is called: what it takes of arrays and counts."""

from tests.theory.swept import flows, guarantees, landscapes, systems

_TABLES = (landscapes, flows, guarantees, systems)
CASES = {name: case for table in _TABLES for name, case in table.CASES.items()}
COUNTS = {name: call for table in _TABLES for name, call in table.COUNTS.items()}

"""The layers of the package: each imports those before it, and nothing but the lab the lab."""

import ast

from gate_builders import REPOSITORY

PACKAGE = REPOSITORY / "ci" / "tilegate_ci"
LAYERS = ["core", "model", "formats", "judge", "measure", "report", "checks", "commands", "lab"]


def rank(module):
    """Of tilegate_ci.NAME…; what starts the commands is one of them."""
    name = module.split(".")[1]
    return LAYERS.index(name if name in LAYERS else "commands")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_layer_imports_none_above_it():
    upwards = []
    for path in PACKAGE.rglob("*.py"):
        own = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        ours = [name for name in imports(path) if name.startswith("tilegate_ci.")]
        upwards += [f"{own} -> {name}" for name in ours if rank(name) > rank(own)]
    assert upwards == []

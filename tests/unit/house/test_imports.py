"""What the import contracts cannot say: no module needs itself, by whatever way round."""

import subprocess
import sys

import grimp
import pytest


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Every import that is carried out, also inside functions; those for types alone are none."""
    return grimp.build_graph("goqueue", exclude_type_checking_imports=True, cache_dir=None)


def cycles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Modules that need each other, by taking away, again and again, whatever needs nobody that is left."""
    needs = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while free := [module for module, needed in needs.items() if not needed & needs.keys()]:
        for module in free:
            del needs[module]
    # What is left leads into a cycle or lies on one: it lies on one when a way leads back to it.
    return [
        set(graph.find_shortest_chain(needed, module) or ())
        for module, all_needed in needs.items()
        for needed in all_needed & needs.keys()
        if graph.chain_exists(needed, module)
    ]


def test_no_module_needs_itself(graph: grimp.ImportGraph) -> None:
    assert not cycles(graph)


def test_a_cycle_would_be_found(graph: grimp.ImportGraph) -> None:
    first, second = "goqueue.model.ids", "goqueue.broker.broker"
    assert graph.chain_exists(second, first)
    graph.add_import(importer=first, imported=second)
    try:
        assert any({first, second} <= cycle for cycle in cycles(graph))
    finally:
        graph.remove_import(importer=first, imported=second)


def test_settings_are_read_before_anything_that_serves_is_loaded() -> None:
    tell = (
        "import sys; import goqueue.node.main; print(*sorted(name for name in sys.modules "
        "if name.startswith(('goqueue.broker', 'goqueue.log', 'numpy', 'litestar', 'aiokafka', 'kio'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)

    assert loaded.stdout.split() == []


def test_a_node_that_is_alone_loads_nothing_of_a_cluster() -> None:
    tell = (
        "import sys; import goqueue.node.main, goqueue.node.serving; "
        "print(*sorted(name for name in sys.modules "
        "if name.split('.')[0] == 'grpc' or name.startswith(('goqueue.proto', 'goqueue.node.etcd', "
        "'goqueue.node.clustering', 'goqueue.broker.cluster', 'goqueue.broker.replication', "
        "'goqueue.edge.peer', 'goqueue.core.cluster.controller'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True)

    assert loaded.stdout.split() == []

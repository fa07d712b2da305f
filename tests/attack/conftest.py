import sys


def pytest_terminal_summary(terminalreporter):
    module = sys.modules.get("test_attack")
    for line in module.table() if module else []:
        terminalreporter.write_line(line)

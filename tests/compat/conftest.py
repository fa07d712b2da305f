"""The table of the compatibility rows, printed at the end of a run."""
import os

TABLE = []


def pytest_runtest_logreport(report):
    row = dict(report.user_properties).get("row")
    if not row or (report.when != "call" and report.passed):
        return
    remark = dict(report.user_properties).get("remark", "")
    if report.skipped:
        remark = report.longrepr[2].removeprefix("Skipped: ")
    word = "works" if report.passed else "pending" if report.skipped else "FAILS"
    TABLE.append((row, word, remark))


def pytest_terminal_summary(terminalreporter):
    if not TABLE:
        return
    caller = "root" if os.geteuid() == 0 else "user"
    terminalreporter.write_sep("=", "compatibility")
    terminalreporter.write_line(f"{'row':30} {'as ' + caller:9} remarks")
    for row, word, remark in sorted(TABLE):
        terminalreporter.write_line(f"{row:30} {word:9} {remark}")

"""Turns the lines of tally into a table."""


def parse(text):
    """Returns [(word, count)] of lines "count<TAB>word"; a bad line raises ValueError."""
    rows = []
    for line in text.splitlines():
        count, word = line.split("\t")
        rows.append((word, int(count)))
    return rows


def table(rows, width=30):
    """One line per word with a bar as long as its share of the largest count."""
    largest = max((count for _, count in rows), default=1)
    return "\n".join(f"{word:12} {'#' * max(1, width * count // largest)} {count}"
                     for word, count in rows)

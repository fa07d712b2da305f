"""Shell lines from a seed, of the kinds that agents send and attacks are made of.

They work on the files a, b, d/e and on new names n, m in the directory where they run: no word of
theirs leads out of it. A mutation could, so who executes them has no rights elsewhere.
"""
import random
from pathlib import Path

CHARACTERS = ";|&<>$`(){}[]#!=\\\"' \n\t*?~,n"


def atoms(kind):
    with open(Path(__file__).with_name("shell_lines.txt")) as file:
        return [row[2:-1].replace("\\n", "\n") if "EOF" in row else row[2:-1]
                for row in file if row.startswith(kind + " ")]


READS, WRITES = atoms("r"), atoms("w")
JOINTS = ["; ", ";", " && ", "&&", " || ", " | ", "|", " |& ", " & ", "\n", " # note\n",
          " \\\n && "]
FRAMES = [
    "{}", "{}", "{}", "({})", "{{ {}; }}", "! {}", "if true; then {}; fi", "if {}; then ls; fi",
    "for i in 1 2; do {}; done", "while {}; do break; done", "case a in a) {} ;; esac",
    "cd d && {}", "{} 2>/dev/null", "{} > /dev/null 2>&1", "{} < a", "{} >n", "{} 2>&1 >>n",
    "until {}; do break; done", "x=1 {}", "LC_ALL=C {}", "[ -f a ] && {}", "time {}", "true || {}",
    "echo start; {}; echo end", "bash -c '{}'", "sh -c \"{}\"", "echo $({})", "cat <({})",
    "timeout 5 bash -c '{}'", "f() {{ {}; }}; f", "{} &\nwait",
]


def spelled(chance, atom):
    """The same words, spelled as shells allow it."""
    words = atom.split(" ")
    for index, word in enumerate(words):
        if word.isalnum() and len(word) > 1 and chance.random() < 0.15:
            at = chance.randrange(1, len(word))
            left, right = word[:at], word[at:]
            words[index] = chance.choice([
                f"'{word}'", f'"{word}"', f"$'{word}'", left + "\\" + right, left + "''" + right,
                left + '""' + right, left + "\\\n" + right])
    return chance.choice([" ", " ", " ", "  ", "\t"]).join(words) if "\n" not in atom else atom


def mutated(chance, line):
    at = chance.randrange(len(line) + 1)
    kind = chance.random()
    if kind < 0.6:
        return line[:at] + chance.choice(CHARACTERS) + line[at:]
    if kind < 0.85:
        return line[:at] + line[at + 1:]
    return line[:at] + chance.choice(READS) + line[at:]


def line(chance):
    parts = []
    for _ in range(chance.choice([1, 1, 1, 2, 2, 3])):
        atom = spelled(chance, chance.choice(READS if chance.random() < 0.6 else WRITES))
        # a here-document ends at its own line
        parts.append(atom if "\n" in atom else chance.choice(FRAMES).format(atom))
    text = parts[0]
    for part in parts[1:]:
        text += ("\n" if text.endswith("EOF") else chance.choice(JOINTS)) + part
    if chance.random() < 0.25:
        text = mutated(chance, text)
    return text


def lines(seed, count):
    chance = random.Random(seed)
    return [line(chance) for _ in range(count)]

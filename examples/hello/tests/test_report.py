import subprocess
import unittest

from report import parse, table


class Report(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(parse("3\ttower\n1\twall\n"), [("tower", 3), ("wall", 1)])

    def test_parse_refuses_a_bad_line(self):
        with self.assertRaises(ValueError):
            parse("no tab here")

    def test_table(self):
        lines = table([("the", 4), ("wall", 1)], width=8).splitlines()
        self.assertEqual(lines[0].count("#"), 8)
        self.assertEqual(lines[1].count("#"), 2)

    def test_with_tally(self):
        text = subprocess.run(["./tally"], input="a wall, a tower", text=True, check=True,
                              capture_output=True).stdout
        self.assertEqual(parse(text), [("a", 2), ("tower", 1), ("wall", 1)])


if __name__ == "__main__":
    unittest.main()

import sys

from report import parse, table

print(table(parse(sys.stdin.read())))

"""Adds up expenses by category."""

import argparse
import csv
import re
import sys
from dataclasses import dataclass


class BadLine(ValueError):
    """A line that is not an expense."""


@dataclass(frozen=True)
class Expense:
    date: str
    category: str
    cents: int


def cents(text):
    """Reads an amount such as `12.50` exactly."""
    match = re.fullmatch(r"(-?)(\d+)(?:\.(\d{1,2}))?", text.strip())
    if not match:
        raise ValueError(f"not an amount: {text!r}")
    sign, whole, part = match.groups("")
    amount = int(whole) * 100 + int(part.ljust(2, "0"))
    return -amount if sign else amount


def read(lines):
    """Yields the expenses of a CSV file with the header `date,category,amount`."""
    reader = csv.DictReader(lines)
    for row in reader:
        try:
            yield Expense(row["date"], row["category"].strip(), cents(row["amount"]))
        except (KeyError, AttributeError, ValueError) as error:
            raise BadLine(f"line {reader.line_num}: {error}") from error


def totals(expenses, month=""):
    """Cents by category, the largest first, of the month given as `YYYY-MM` or of all."""
    sums = {}
    for expense in expenses:
        if expense.date.startswith(month):
            sums[expense.category] = sums.get(expense.category, 0) + expense.cents
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def money(amount):
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"


def report(sums):
    """The totals as lines, with a sum below."""
    rows = [*sums.items(), ("total", sum(sums.values()))]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}} {money(amount):>10}" for name, amount in rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--month", default="", help="YYYY-MM")
    options = parser.parse_args(arguments)
    try:
        with open(options.file, newline="", encoding="utf-8") as lines:
            print(report(totals(read(lines), options.month)))
    except (OSError, BadLine) as error:
        print(f"tally: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

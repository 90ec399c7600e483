import contextlib
import io
import os
import tempfile
import unittest

import tally


def expenses(text):
    return list(tally.read(io.StringIO("date,category,amount\n" + text)))


class Amounts(unittest.TestCase):
    def test_are_exact(self):
        self.assertEqual(tally.cents("0.1"), 10)
        self.assertEqual(tally.cents("12.34"), 1234)
        self.assertEqual(tally.cents("7"), 700)
        self.assertEqual(tally.cents("-3.05"), -305)

    def test_refuse_what_is_no_amount(self):
        for text in ["", "x", "1,50", "1.234", "--1", "1."]:
            with self.subTest(text), self.assertRaises(ValueError):
                tally.cents(text)

    def test_print_as_they_were_read(self):
        for text in ["0.00", "0.05", "-3.05", "1200.40"]:
            self.assertEqual(tally.money(tally.cents(text)), text)


class Reading(unittest.TestCase):
    def test_keeps_the_order(self):
        found = expenses("2026-01-02,b,1\n2026-01-01,a,2\n")
        self.assertEqual([expense.category for expense in found], ["b", "a"])

    def test_names_the_bad_line(self):
        with self.assertRaisesRegex(tally.BadLine, "line 3: not an amount: 'much'"):
            expenses("2026-01-02,a,1\n2026-01-03,a,much\n")

    def test_refuses_a_short_line(self):
        with self.assertRaisesRegex(tally.BadLine, "line 2"):
            expenses("2026-01-02,a\n")


class Totals(unittest.TestCase):
    SOME = "2026-01-02,food,1.10\n2026-01-05,rent,9\n2026-02-01,food,2.20\n"

    def test_put_the_largest_first(self):
        sums = tally.totals(expenses(self.SOME))
        self.assertEqual(list(sums.items()), [("rent", 900), ("food", 330)])

    def test_can_be_of_one_month(self):
        self.assertEqual(tally.totals(expenses(self.SOME), "2026-02"), {"food": 220})

    def test_of_nothing_are_nothing(self):
        self.assertEqual(tally.report(tally.totals([])), "total       0.00")


class Program(unittest.TestCase):
    def run_on(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = tally.main([path])
        return code, out.getvalue(), err.getvalue()

    def test_prints_a_report(self):
        code, out, err = self.run_on("date,category,amount\n2026-01-02,food,1.10\n")
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, "food        1.10\ntotal       1.10\n")

    def test_says_what_is_wrong(self):
        code, out, err = self.run_on("date,category,amount\n2026-01-02,food,x\n")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(err, "tally: line 2: not an amount: 'x'\n")


if __name__ == "__main__":
    unittest.main()

"""Errors that type checkers must find: one in each line with a comment."""

import umbel

umbel.Bloom("ten", 0.01)  # error
umbel.Bloom(10)  # error
umbel.Bloom(10, 0.01, kind="cuckoo")  # error
umbel.Bloom(10, 0.01, hash="sha256")  # error
umbel.Bloom(10, 0.01, secret=5)  # error
umbel.Bloom(10, 0.01, "standard")  # error
f = umbel.Bloom(10, 0.01)
f.remove("a")  # error
len(f)  # error
f.contains_many(5)  # error
f | {"a"}  # error
f.approx_items = 5  # error
f.stats()["bitz"]  # error
umbel.plan(10, 0.01, kind="fussy")  # error
umbel.TopK(2).items(float)  # error
umbel.Count(10) | umbel.Distinct()  # error
umbel.Foreign("bitmap", 10, 0.01)  # error
umbel.load("f", format="guava", funnel="text")  # error
f.save("f", format="xml")  # error


class Mine(umbel.Bloom):  # error
    pass

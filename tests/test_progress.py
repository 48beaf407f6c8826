from oaccdepth.progress import share


def test_a_part_of_the_work_reports_its_share_of_the_whole():
    told = []
    report = share(lambda *words: told.append(words), 0.2, 0.6)
    report("reading", 0.0)
    share(report, 0.5, 1.0)("writing", 1.0)
    assert told[0] == ("reading", 0.2) and told[1][0] == "writing" and abs(told[1][1] - 0.6) < 1e-9

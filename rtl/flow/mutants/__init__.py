"""Every mutant: file, what it says, what the mutant says, the checks that must see it."""

from flow.mutants import classes, common, cxl, host, phy, sched, switch, top

MUTANTS = [
    mutant
    for part in (common, phy, host, sched, classes, switch, top, cxl)
    for mutant in part.MUTANTS
]

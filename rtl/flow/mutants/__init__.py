"""Every mutant: file, what it says, what the mutant says, the checks that must see it."""

from flow.mutants import classes, common, host, phy, sched, switch

MUTANTS = [
    mutant for part in (common, phy, host, sched, classes, switch) for mutant in part.MUTANTS
]

"""Fits a power of N to what was measured, and says how far 512 ports are from knowing it."""

import math

EXTRAPOLATED_PORTS = 512
# Student's t for 95 % on both sides, by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57}
QUANTITIES = ["transistors", "flip_flops", "memory_bits"]
FEWEST_POINTS = 3


def fit(points):
    """A power law through (N, value): exponent, its 95 % interval, and the value at 512 ports.

    The interval is that of a prediction, from the scatter about the line. It knows nothing of a
    curve that bends beyond the last point, so what the last doubling alone says is there too.
    """
    xs = [math.log(ports) for ports, _ in points]
    ys = [math.log(value) for _, value in points]
    count = len(points)
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    deviation = math.sqrt(residual / (count - 2))
    student = STUDENT[min(count - 2, max(STUDENT))]
    away = math.log(EXTRAPOLATED_PORTS) - mean_x
    predicted = mean_y + slope * away
    margin = student * deviation * math.sqrt(1 + 1 / count + away**2 / spread)
    last = (ys[-1] - ys[-2]) / (xs[-1] - xs[-2])
    from_last = ys[-1] + last * (math.log(EXTRAPOLATED_PORTS) - xs[-1])
    return {
        "exponent": slope,
        "exponent_margin": student * deviation / math.sqrt(spread),
        "exponent_last": last,
        "at_512": math.exp(predicted),
        "at_512_low": math.exp(predicted - margin),
        "at_512_high": math.exp(predicted + margin),
        "at_512_last": math.exp(from_last),
    }


def all_fits(rows):
    """A fit for each module and quantity that has enough points."""
    fits = []
    for top in sorted({row["top"] for row in rows if row["ports"]}):
        for quantity in QUANTITIES:
            measured = [row for row in rows if row["top"] == top and row["target"] == "quick"]
            points = [(row["ports"], row.get(quantity)) for row in measured if row.get(quantity)]
            if len(points) >= FEWEST_POINTS:
                fits.append({"top": top, "quantity": quantity, "points": points, **fit(points)})
    return fits


def lines(fits):
    """The fits as lines of text."""
    return [
        f"{f['top']}: {f['quantity']} ~ N^{f['exponent']:.2f} (+- {f['exponent_margin']:.2f}), "
        f"{f['at_512']:.2g} at 512 ports ({f['at_512_low']:.2g} to {f['at_512_high']:.2g}); "
        f"by the last doubling N^{f['exponent_last']:.2f}, {f['at_512_last']:.2g}"
        for f in fits
    ]

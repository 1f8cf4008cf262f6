"""Planes that several tests draw."""

from sfumato.displays.breach_plane import BreachPlaneDisplay
from sfumato.manifest import Manifest

# Table 5 of the paper (Pima, C4.5).
N_COLUMNS = (8, 7, 6, 5, 4, 3, 2, 1, 7, 6, 5, 4, 3, 2)
BREACH = (0, 1.409, 1.231, 0.889, 0.711, 0.711, 0.882, -1.072, -1.942, -0.708, -1.238, -1.241, -0.893, -1.072)
PERFORMANCE = (
    73.835,
    74.875,
    74.744,
    74.491,
    74.359,
    74.359,
    74.486,
    73.043,
    72.401,
    73.312,
    72.920,
    72.919,
    73.175,
    73.043,
)


def is_beaten(place, *costs):
    """Whether some other one is as low in every cost and lower in one."""
    own = [cost[place] for cost in costs]
    others = [[cost[other] for cost in costs] for other in range(len(costs[0]))]
    return any(all(a <= b for a, b in zip(o, own, strict=True)) and o != own for o in others)


def plane_of(performance, breach, n_columns, baseline=None, **more):
    lost = [-value for value in performance]
    front = tuple(not is_beaten(place, lost, breach, n_columns) for place in range(len(lost)))
    baseline = performance[0] if baseline is None else baseline
    return BreachPlaneDisplay(tuple(performance), tuple(breach), tuple(n_columns), front, baseline, **more)


def pima_plane(**more):
    given = {"max_breach_increase": 0.0, "chosen": 7, "floor": -2.5} | more
    return plane_of(PERFORMANCE, BREACH, N_COLUMNS, **given)


def entry(columns, performance, breach, **more):
    """One candidate as a manifest lists it."""
    return {
        "columns": list(columns),
        "n_columns": len(columns),
        "performance": performance,
        "breach_increase_percent": breach,
        "region": "baseline",
        "on_pareto_front": True,
        "chosen": False,
        "score": 1.0,
        "p_value": None,
        "ranks": {"performance": 1, "privacy": 1, "size": 1},
    } | more


def manifest_of(entries, *, metric="accuracy", n_candidates=None, mechanism="breach-aware"):
    n_candidates = len(entries) - 1 if n_candidates is None else n_candidates
    return Manifest(
        input={"name": "in.csv", "commitment": None, "format": "csv", "rows": 9, "columns": 2},
        output={"name": "out.csv", "sha256": None, "format": "csv", "rows": 9, "order": "sorted", "columns": []},
        mechanism={"name": mechanism, "parameters": {"max_breach_increase": -0.5, "metric": metric}, "seed": 0},
        missing={"tokens": [], "rows": "kept", "n_dropped": 0},
        evidence={
            "risk": {"share_of_the_most_frequent_value": 0.6, "attacker_performance_with_all_columns": 0.8},
            "choice": {
                "n_candidates": n_candidates,
                "candidates_by_region": dict.fromkeys(("I", "II", "III", "IV"), 0),
                "region_of_the_choice": "I",
                "weights": dict.fromkeys(("performance", "privacy", "size"), 1 / 3),
                "candidates": entries,
            },
        },
    )


TWO = (entry(["age", "sex"], 0.75, 0.0, on_pareto_front=False), entry(["sex"], 0.76, -2.0, chosen=True))

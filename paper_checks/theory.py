"""Checks by construction: build at real sizes, ask every query, prove from the weights, compare with the closed form."""

from math import log2
from typing import Any

import torch

import bounds
import constructions
from constructions.associative import accuracy_by_dimension
from constructions.construction import Construction
from geotheory.facts import FactTable
from geotheory.verification import verify
from paper_checks.learning.readouts import fit_readout, fit_superposition
from paper_checks.scope import Scope

__all__ = [
    "associative_memory_is_larger",
    "chain_of_thought_recalls",
    "decoder_is_generic",
    "direct_recalls",
    "embeddings_superpose",
    "hops_per_step_trade_off",
    "key_value_recalls",
    "lower_bound_holds",
    "meet_in_middle_recalls",
    "single_hop_recalls",
]

Found = tuple[dict[str, Any], str]


def _recalls(*built: Construction) -> Found:
    """Every query of every construction, its proof, and its size against the closed form."""
    figures = []
    for c in built:
        found, certificate = verify(c), c.certificate()
        shape = f"{c.kind}(N={c.facts.num_subjects}, R={c.facts.num_relations}, k={c.hops})"
        if not found.holds:
            return {}, f"{shape}: {found}"
        if not certificate.holds:
            return {}, f"{shape}: {certificate}"
        if c.transformer.num_parameters != c.size.parameters or c.transformer.shape.d != c.size.d:
            return {}, f"{shape}: the weights are not of size {c.size}"
        figures.append(
            {
                "construction": shape,
                "queries": found.queries,
                "margin": found.margin,
                "epsilon": certificate.epsilon,
                "d": c.size.d,
                "width": c.size.width,
                "steps": c.size.steps,
            }
        )
    return {"built": figures}, ""


def single_hop_recalls(_: Scope | None = None) -> Found:
    """T1 at the paper's size and at sizes that are no powers of two."""
    worlds = [FactTable.random_bijections(entities=N, relations=R) for N, R in ((4096, 16), (1000, 5), (1, 1))]
    figures, counterexample = _recalls(*(constructions.single_hop(facts) for facts in worlds))
    return figures, counterexample


def embeddings_superpose(_: Scope | None = None) -> Found:
    """Least squares on the rows of T1, judged on held-out subjects; a key-value memory beside it."""
    facts = FactTable.random_bijections(entities=1024, relations=4)
    figures = {}
    for name, built in (
        ("single_hop", constructions.single_hop(facts)),
        ("single_hop, 3 bits a coordinate", constructions.single_hop(facts, bits=3)),
        ("key_value", constructions.key_value(facts)),
    ):
        fit, read = fit_superposition(built.transformer, facts), fit_readout(built.transformer, facts)
        figures[name] = {"held-out R2": fit.r2, "attributes read": sum(read.accuracy) / len(read.accuracy)}
        if (fit.r2 > 1 - 1e-6) != (built.kind == "single_hop"):
            return figures, f"{name}: held-out R^2 is {fit.r2:.6f}"
    return figures, ""


def decoder_is_generic(_: Scope | None = None) -> Found:
    """All weights of two worlds compared, byte for byte."""
    worlds = [FactTable.random_bijections(entities=512, relations=4, seed=seed) for seed in (1, 2)]
    builders = {
        "single_hop": constructions.single_hop,
        "direct": lambda facts: constructions.direct(facts, 2),
        "chain_of_thought": lambda facts: constructions.chain_of_thought(facts, 5),
    }
    compared = 0
    for name, build in builders.items():
        one, other = (build(facts).transformer.state_dict() for facts in worlds)
        if torch.equal(one["embedding"][:512], other["embedding"][:512]):
            return {}, f"{name}: the subjects' rows of two different worlds are the same"
        one["embedding"], other["embedding"] = one["embedding"][512:], other["embedding"][512:]
        for weight in one:
            if not torch.equal(one[weight], other[weight]):
                return {}, f"{name}: {weight} depends on the facts"
            compared += one[weight].numel()
    return {"weights compared": compared, "weights that differ": 0}, ""


def direct_recalls(_: Scope | None = None) -> Found:
    """T2, exhaustively."""
    shapes = ((50, 3, 2), (100, 3, 3), (64, 2, 4))
    return _recalls(*(constructions.direct(FactTable.random_bijections(N, R), k) for N, R, k in shapes))


def lower_bound_holds(_: Scope | None = None) -> Found:
    """B1 against brute force for small worlds, and against T2 and T4 at the paper's size."""
    small = []
    for N, R, k in ((3, 2, 2), (4, 2, 2), (4, 2, 3), (3, 3, 2), (5, 2, 2)):
        for M in range(1, N + 1):
            tables = bounds.tables("permutation", entities=N, relations=R, hops=k, roots=M)
            for P in (0, 2, 8):
                bound = bounds.fixed_unembedding(N, R, k, P)
                if bound.roots == M and bound.bits and P + M * bound.bits > log2(tables) + 1e-9:
                    return (
                        {},
                        f"N={N}, R={R}, k={k}, P={P}: {bound.bits} bits a row, but only {tables} tables on {M} rows",
                    )
            small.append({"N": N, "R": R, "k": k, "M": M, "tables": tables})
    paper = {}
    for k in (1, 2, 3):
        needed = bounds.fixed_unembedding(4096, 16, k).bits
        direct = constructions.size("direct", entities=4096, relations=16, hops=k).bits_in
        shared = constructions.size("key_value", entities=4096, relations=16, hops=k).bits_shared
        left = bounds.fixed_unembedding(4096, 16, k, shared).bits
        paper[f"k={k}"] = {
            "bits needed": needed,
            "bits of direct": direct,
            "needed beside key_value's shared bits": left,
        }
        if direct < needed or left > 0:
            return paper, f"at k={k} a construction is below the bound: {paper[f'k={k}']}"
    return {"brute force": small, "N=4096, R=16": paper}, ""


def key_value_recalls(_: Scope | None = None) -> Found:
    """T4, exhaustively."""
    shapes = ((50, 3, 1), (50, 3, 2), (64, 2, 3))
    return _recalls(*(constructions.key_value(FactTable.random_bijections(N, R), k) for N, R, k in shapes))


def chain_of_thought_recalls(_: Scope | None = None) -> Found:
    """T3, exhaustively, for growing k: the width must not grow, and d only with the positions' code."""
    facts = FactTable.random_bijections(entities=32, relations=2)
    built = [constructions.chain_of_thought(facts, k) for k in (1, 2, 4, 8)]
    figures, counterexample = _recalls(*built)
    if len({c.size.width for c in built}) > 1:
        counterexample = counterexample or f"the width grows with k: {[c.size.width for c in built]}"
    return figures, counterexample


def hops_per_step_trade_off(_: Scope | None = None) -> Found:
    """T3 at every number of hops per step, k = 4."""
    facts = FactTable.random_bijections(entities=40, relations=2)
    built = [constructions.chain_of_thought(facts, 4, j) for j in (1, 2, 3, 4)]
    figures, counterexample = _recalls(*built)
    steps = [c.size.steps for c in built]
    if steps != [4, 2, 2, 1] or built[0].size.d >= built[1].size.d or built[1].size.d >= built[3].size.d:
        counterexample = counterexample or f"steps {steps}, d {[c.size.d for c in built]}"
    return figures, counterexample


def meet_in_middle_recalls(_: Scope | None = None) -> Found:
    """T5, exhaustively, next to the direct construction of the same queries."""
    facts = FactTable.random_bijections(entities=100, relations=3)
    built = [constructions.meet_in_middle(facts, 3, f, layers) for f in range(4) for layers in (1, 2)]
    figures, counterexample = _recalls(*built)
    best, direct = min(c.size.d for c in built), constructions.size("direct", entities=100, relations=3, hops=3).d
    figures["smallest d"], figures["d of direct"] = best, direct
    if best >= direct:
        counterexample = counterexample or f"d = {best} is no less than that of direct, {direct}"
    return figures, counterexample


def associative_memory_is_larger(_: Scope | None = None) -> Found:
    """The least power of two at which the associative memory recalls 90%, for growing N, against T1's d."""
    figures, least = [], []
    for N in (64, 256, 1024):
        facts = FactTable.random_bijections(entities=N, relations=2)
        points = []
        for point in accuracy_by_dimension(facts, (1 << i for i in range(4, 12))):
            points.append({"d": point.d, "accuracy": point.accuracy})
            if point.accuracy >= 0.9:
                break
        least.append(points[-1]["d"])
        single = constructions.size("single_hop", entities=N, relations=2).d
        figures.append({"N": N, "single_hop d": single, "associative": points})
        if next(p["accuracy"] for p in points if p["d"] >= single) >= 0.99:
            return {"measured": figures}, f"at N={N} the associative memory recalls 99% at d = {single} already"
    exponent = log2(least[-1] / least[0]) / log2(1024 / 64)
    return {
        "measured": figures,
        "exponent of N in d": exponent,
    }, "" if exponent > 0.25 else f"d grows as N^{exponent:.2f} only"

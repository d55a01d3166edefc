"""Every way to build a construction for some facts: what the properties run over."""

from collections.abc import Callable, Iterator
from functools import partial

import constructions
from constructions.construction import Construction
from geotheory import FactTable

Builder = Callable[[FactTable], Construction]


def variants(facts: FactTable, hops: int) -> Iterator[tuple[str, Builder]]:
    """All constructions that apply to the facts, with their options."""
    for residual in (False, True):
        flags = {"residual": residual}
        if hops == 1:
            for bits in (1, 2, 3):
                yield f"single_hop bits={bits} {flags}", partial(constructions.single_hop, bits=bits, **flags)
        if hops > 1 and not facts.is_composable:
            continue
        for attention in ("softmax", "hard"):
            both = flags | {"attention": attention}
            yield f"key_value {both}", partial(constructions.key_value, hops=hops, **both)
            for bits in (1, 2):
                yield f"direct bits={bits} {both}", partial(constructions.direct, hops=hops, bits=bits, **both)
                for j in range(1, hops + 1):
                    build = partial(constructions.chain_of_thought, hops=hops, hops_per_step=j, bits=bits, **both)
                    yield f"chain_of_thought hops_per_step={j} bits={bits} {both}", build
            if not facts.is_bijective:
                continue
            for forward in range(hops + 1):
                for layers in (1, 2):
                    split = {"forward": forward, "hidden_layers": layers} | both
                    yield f"meet_in_middle {split}", partial(constructions.meet_in_middle, hops=hops, **split)

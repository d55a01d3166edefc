"""Lower bounds on what any transformer needs to recall facts, and counts of the graphs behind them. Loads no torch.

Importing this package loads nothing else; its names are looked up when they are first used.
"""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from bounds import symbolic as symbolic
    from bounds.bound import Bound as Bound
    from bounds.chain_of_thought import chain_of_thought as chain_of_thought
    from bounds.counting import count as count
    from bounds.curves import split_curve as split_curve
    from bounds.curves import threshold_curve as threshold_curve
    from bounds.drawing import draw as draw
    from bounds.fixed_unembedding import fixed_unembedding as fixed_unembedding
    from bounds.free_unembedding import free_unembedding as free_unembedding
    from bounds.frozen_embedding import frozen_embedding as frozen_embedding
    from bounds.graphs import canonical_form as canonical_form
    from bounds.graphs import from_permutations as from_permutations
    from bounds.graphs import graphs as graphs
    from bounds.graphs import is_connected as is_connected
    from bounds.graphs import is_properly_coloured as is_properly_coloured
    from bounds.graphs import is_regular as is_regular
    from bounds.graphs import random_graph as random_graph
    from bounds.graphs import tables as tables
    from bounds.graphs import to_permutations as to_permutations
    from bounds.minimum import Row as Row
    from bounds.minimum import largest_entities as largest_entities
    from bounds.minimum import largest_hops as largest_hops
    from bounds.minimum import minimum as minimum
    from bounds.minimum import smallest_bits as smallest_bits
    from bounds.real_dimension import cells as cells
    from bounds.real_dimension import real_dimension as real_dimension
    from bounds.width import width as width

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Bound": "bound",
        "Row": "minimum",
        "canonical_form": "graphs",
        "cells": "real_dimension",
        "chain_of_thought": "chain_of_thought",
        "count": "counting",
        "draw": "drawing",
        "fixed_unembedding": "fixed_unembedding",
        "free_unembedding": "free_unembedding",
        "from_permutations": "graphs",
        "frozen_embedding": "frozen_embedding",
        "graphs": "graphs",
        "is_connected": "graphs",
        "is_properly_coloured": "graphs",
        "is_regular": "graphs",
        "largest_entities": "minimum",
        "largest_hops": "minimum",
        "minimum": "minimum",
        "random_graph": "graphs",
        "real_dimension": "real_dimension",
        "smallest_bits": "minimum",
        "split_curve": "curves",
        "symbolic": "symbolic",
        "tables": "graphs",
        "threshold_curve": "curves",
        "to_permutations": "graphs",
        "width": "width",
    },
)

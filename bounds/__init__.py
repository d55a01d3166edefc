"""Lower bounds on what any transformer needs to recall facts, and counts of the graphs behind them. Loads no torch.

Importing this package loads nothing else; its names are looked up when they are first used.
"""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from bounds import symbolic as symbolic
    from bounds.bound import Bound as Bound
    from bounds.counting import count as count
    from bounds.curves import split_curve as split_curve
    from bounds.curves import threshold_curve as threshold_curve
    from bounds.drawing import draw as draw
    from bounds.graphs import canonical_form as canonical_form
    from bounds.graphs import from_permutations as from_permutations
    from bounds.graphs import graphs as graphs
    from bounds.graphs import is_connected as is_connected
    from bounds.graphs import is_properly_coloured as is_properly_coloured
    from bounds.graphs import is_regular as is_regular
    from bounds.graphs import random_graph as random_graph
    from bounds.graphs import tables as tables
    from bounds.graphs import to_permutations as to_permutations
    from bounds.information import chain_of_thought as chain_of_thought
    from bounds.information import fixed_unembedding as fixed_unembedding
    from bounds.information import free_unembedding as free_unembedding
    from bounds.information import frozen_embedding as frozen_embedding
    from bounds.information import width as width
    from bounds.minimum import Row as Row
    from bounds.minimum import largest_entities as largest_entities
    from bounds.minimum import largest_hops as largest_hops
    from bounds.minimum import minimum as minimum
    from bounds.minimum import smallest_bits as smallest_bits
    from bounds.regions import cells as cells
    from bounds.regions import real_dimension as real_dimension

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Bound": "bound",
        "Row": "minimum",
        "canonical_form": "graphs",
        "cells": "regions",
        "chain_of_thought": "information",
        "count": "counting",
        "draw": "drawing",
        "fixed_unembedding": "information",
        "free_unembedding": "information",
        "from_permutations": "graphs",
        "frozen_embedding": "information",
        "graphs": "graphs",
        "is_connected": "graphs",
        "is_properly_coloured": "graphs",
        "is_regular": "graphs",
        "largest_entities": "minimum",
        "largest_hops": "minimum",
        "minimum": "minimum",
        "random_graph": "graphs",
        "real_dimension": "regions",
        "smallest_bits": "minimum",
        "split_curve": "curves",
        "symbolic": "symbolic",
        "tables": "graphs",
        "threshold_curve": "curves",
        "to_permutations": "graphs",
        "width": "information",
    },
)

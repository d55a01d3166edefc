"""Explicit transformer weights that recall facts, their sizes in closed form, and proofs from the weights.

Importing this package loads no torch; its names are looked up when they are first used.
"""

from typing import TYPE_CHECKING

from geotheory._lazy import attach

if TYPE_CHECKING:
    from constructions.associative import associative as associative
    from constructions.certificates import Certificate as Certificate
    from constructions.certificates import Statement as Statement
    from constructions.chain_of_thought import chain_of_thought as chain_of_thought
    from constructions.construction import Construction as Construction
    from constructions.direct import direct as direct
    from constructions.key_value import key_value as key_value
    from constructions.meet_in_middle import meet_in_middle as meet_in_middle
    from constructions.schema import schema as schema
    from constructions.single_hop import single_hop as single_hop
    from constructions.sizes import Size as Size
    from constructions.sizes import expressions as expressions
    from constructions.sizes import size as size
    from constructions.storage import load as load

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Certificate": "certificates",
        "Construction": "construction",
        "Size": "sizes",
        "Statement": "certificates",
        "associative": "associative",
        "chain_of_thought": "chain_of_thought",
        "direct": "direct",
        "expressions": "sizes",
        "key_value": "key_value",
        "load": "storage",
        "meet_in_middle": "meet_in_middle",
        "schema": "schema",
        "single_hop": "single_hop",
        "size": "sizes",
    },
)

"""Lower bounds on what any transformer needs to recall facts, and counts of the graphs behind them. Loads no torch."""

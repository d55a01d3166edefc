"""A check that takes its process down."""

import os


def die(_):
    os._exit(3)

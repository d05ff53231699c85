"""Random numbers of configurations."""
import random


class Draw:
    """The random numbers of one configuration: each is drawn whatever the others are."""

    def __init__(self, seed, number):
        self._random = random.Random(f"{seed}/{number}")

    def one_of(self, *choices):
        return self._random.choice(choices)

    def chance(self, probability):
        return self._random.random() < probability

    def between(self, low, high, step=1):
        return self._random.randrange(low, high + 1, step)

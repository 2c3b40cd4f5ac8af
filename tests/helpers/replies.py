"""Answers by a plain function, for programs that are run without a driver."""

from stratsynth.driver.lockstep import AnswerSource


class Replies(AnswerSource):
    """Answers by a function of the questions of one moment."""

    def __init__(self, function):
        self.function = function

    def __call__(self, asked):
        return self.function(asked)

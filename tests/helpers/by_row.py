"""Functions of rows as `PerRow` takes them, in numpy alone."""

import numpy as np

from stratsynth.questions import PerRow


def softmax(features, classes):
    """Softmax regression without a constant: weights are one column a class."""

    def function(weights, x, levels, slopes):
        # one row after another: a matrix product may round a row's last digits otherwise beside other rows
        z = (x[:, :, None] * weights.reshape(features, classes)).sum(axis=1)
        power = np.exp(z - z.max(axis=1, keepdims=True))
        chances = power / power.sum(axis=1, keepdims=True)
        mean = (chances * slopes).sum(axis=1, keepdims=True)
        residuals = chances - np.eye(classes)[levels] + chances * (slopes - mean)
        return (x[:, :, None] * residuals[:, None]).reshape(len(x), -1), chances

    return function


def by_row(features, classes, clip=1.0, function=None):
    """A `PerRow` of it."""
    return PerRow(function or softmax(features, classes), features, classes, features * classes, clip)

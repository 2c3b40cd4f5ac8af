"""Common part of all estimators: from arrays and declared bounds to a table, a fit and its coefficients."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from stratsynth.accounting.budget import Budget, Neighbours
from stratsynth.accounting.public_budget import budget_of
from stratsynth.adapters.predictors import Regression
from stratsynth.adapters.predictors.network import Network
from stratsynth.checks import is_list, quoted_value
from stratsynth.data.table import open_table
from stratsynth.errors import NotPrivateWarning, Stopped, UsageError
from stratsynth.fitting import fit
from stratsynth.fitting.stages import Fit
from stratsynth.schema import Categorical, Numeric, Schema, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratsynth.accounting.ledger import Request
    from stratsynth.data.table import PrivateTable
    from stratsynth.mechanisms import Mechanism
    from stratsynth.release import Release
    from stratsynth.schema import Column

T = TypeVar("T")
M = TypeVar("M")
GROUP, TARGET = "group", "target"
EVERYBODY = "everybody"
"""Label of the one group where none are declared."""
OTHER = "other"
"""Label of every value that is not a declared level."""


def named(x: NDArray[Any]) -> list[str]:
    """Return a list of names x0, x1, ..., which the columns of the array `x`, features, have in the private table."""
    return [f"x{i}" for i in range(x.shape[1])]


@dataclass(kw_only=True, eq=False, repr=False)
class GroupedEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base of the estimators: common parameters and steps; subclasses declare theirs as keyword fields."""

    epsilon: float
    delta: float
    bounds: Any
    groups: Any = None
    declared_size: int | None = None
    ledger: str | os.PathLike[str] | None = None
    ledger_epsilon: float | None = None
    account: str | None = None
    public: bool = False
    unit: Unit | None = None
    first: float | None = None
    proceed: bool = False
    protect = "all"
    """`all` if whole records are protected, `sensitive` if the sensitive feature alone is."""
    coef_: NDArray[np.float64] = field(init=False)
    release_: Release = field(init=False)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, non-deterministic: two fits to equal data differ."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """Return an estimator with equal parameters; UsageError for, or price, a search that clones it."""
        from stratsynth.adapters.sklearn.searches import check_clone

        check_clone(self)
        found: Self = super().__sklearn_clone__()
        return found

    @property
    def scores_are_open(self) -> bool:
        """True if a score gives nothing private out: the data are public, or all but the sensitive feature."""
        return self.public or self.protect == "sensitive"

    def _tell_of_scores(self) -> None:
        """Warn (NotPrivateWarning) that a score of private rows is not private."""
        if not self.scores_are_open:
            warnings.warn(
                "score computes from the rows that it is given, without noise: of private rows it is INTERNAL, and is "
                "neither to be published nor to decide anything that is. NoisyScore pays, PublicScore takes public "
                "rows; or declare the data public, public=True.",
                NotPrivateWarning,
                stacklevel=3,
            )

    def apart(self, x: Any) -> tuple[Any, Any]:
        """Return (features `x` without the unit's column, that column or None); UsageError if the unit is no Unit."""
        if self.unit is None:
            return x, None
        if not isinstance(self.unit, Unit):
            raise UsageError('unit must be Unit(column="...", max_rows=...), with a column of the features.')
        if not isinstance(x, pd.DataFrame) or self.unit.column not in x.columns:
            return x, None
        return x.drop(columns=[self.unit.column]), x[self.unit.column].reset_index(drop=True)

    def owned(self, frame: pd.DataFrame, owners: Any) -> str | Unit:
        """Return a schema's unit; put `owners`, each row's, into its column of the frame.

        "record" without a declared unit; UsageError for rows without owners.
        """
        if self.unit is None:
            return "record"
        if owners is None or self.unit.column in frame.columns:
            raise UsageError(
                f"unit: X must be a pandas frame with the column {self.unit.column!r}, which is taken out of the "
                "features, and which has another name than x0, x1, ..., group and target."
            )
        frame[self.unit.column] = owners
        return self.unit

    def account_settings(self) -> dict[str, Any]:
        """Return a dict of keyword arguments of `open_table`: ledger, ledger_epsilon, account, public."""
        return {name: getattr(self, name) for name in ("ledger", "ledger_epsilon", "account", "public")}

    @abstractmethod
    def _mechanism(self, features: Sequence[str]) -> Mechanism[Any]:
        """Return the mechanism for feature columns of these names, for TARGET, and GROUP if there are groups."""

    @abstractmethod
    def _target(self) -> Column:
        """Return the declaration, a `Column`, of the target in the schema."""

    def table_of_nobody(self, x: Any) -> PrivateTable:
        """Return a `PrivateTable` as a fit to features like `x` opens, with one row that is nobody's, to price it."""
        ends = [1 if not is_list(self.bounds) else max(map(np.size, self.bounds))]
        width = ends[0] if ends[0] > 1 else np.shape(self.apart(x)[0])[1]
        sensitive = None if self.groups is None else [None]
        owners = None if self.unit is None else pd.Series([0])
        return self._table(np.zeros((1, width)), [0.0], self._target(), sensitive, owners)

    def request(self, x: Any) -> Request:
        """Return the Request that a fit to features like `x` makes to their account; nothing is read or reserved."""
        table = self.table_of_nobody(x)
        features = [name for name in table.schema.names if name not in {GROUP, TARGET}]
        return Fit.prepare(self._mechanism(features), table, self._budget).request

    @property
    def _budget(self) -> Budget:
        """Return the Budget of a fit: epsilon, delta and protection as set; UsageError beyond their ranges."""
        neighbours = Neighbours.ATTRIBUTE if self.protect == "sensitive" else Neighbours.ADD_REMOVE
        return budget_of(self.epsilon, self.delta, neighbours, first=self.first, public=self.public is True)

    @property
    def certificate_(self) -> Mapping[str, Any]:
        """Certificate of the last fit, a mapping with the fields of `certificate.json`."""
        check_is_fitted(self)
        return self.release_.certificate

    def _bounds(self, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two arrays, lower and upper bounds, one a feature; `features` is their number.

        ValueError for unsound ones.
        """
        if not is_list(self.bounds) or len(self.bounds) != 2:
            raise ValueError("bounds must be a pair: (lower, upper), each a number or an array with one a feature.")
        try:
            low, high = (np.broadcast_to(np.asarray(end, np.float64), (features,)) for end in self.bounds)
        except ValueError:
            raise ValueError(f"bounds must be numbers, or arrays with one for each of {features} features.") from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError("bounds must be finite, and each lower one below the upper one.")
        return low, high

    def _levels(self) -> list[Any]:
        """Return a list of the declared groups, or of EVERYBODY alone; UsageError for no list or an empty one."""
        if self.groups is None:
            return [EVERYBODY]
        groups = self.groups.tolist() if isinstance(self.groups, np.ndarray) else self.groups
        if not is_list(groups) or not groups or not all(isinstance(level, Hashable) for level in groups):
            raise UsageError(f'groups must be a list of levels, such as ["f", "m"], not {quoted_value(self.groups)}.')
        return list(groups)

    def _by_label(self, what: str, given: Mapping[Any, T] | None) -> dict[str, T]:
        """Return {number of a level, as text: value} of `given`, which maps declared groups to values; {} for None.

        UsageError, opening with `what`, for undeclared groups.
        """
        labels = {level: str(i) for i, level in enumerate(self._levels())}
        if given is not None and not isinstance(given, Mapping):
            raise UsageError(f"{what} must be a table from groups to numbers, not {quoted_value(given)}.")
        for level in () if given is None else given:
            if level not in labels:
                raise UsageError(f"{what} names {level!r}, which is not among the declared groups.")
        return {} if given is None else {labels[level]: value for level, value in given.items()}

    def _settings(self, how: Callable[..., M], features: Sequence[str], **own: Any) -> M:
        """Return a mechanism of class `how` for columns `features`.

        Settings are the keywords `own`, else the estimator's.
        """
        names = {each.name for each in fields(cast("Any", how))} & self.get_params(deep=False).keys() - own.keys()
        return how(target=TARGET, features=features, **own, **{name: getattr(self, name) for name in names})

    def _spend(self, x: NDArray[Any], target: Any, sensitive: Any, owners: Any) -> None:
        """Fit the estimator's mechanism to features `x`, an array, `target`, `sensitive` group and `owners` of rows.

        The latter have an entry a row; no groups and no owners are None. Keep the release, from which predictions are
        made.
        """
        table = self._table(x, target, self._target(), sensitive, owners)
        try:
            self.release_ = fit(self._mechanism(named(x)), table, self._budget, progress=False, proceed=self.proceed)
        except Stopped as error:
            raise Stopped(
                f"{error} Here {TARGET} is y, whose values have to be of the declared `classes` or within "
                f"`target_bounds`; {GROUP} is the sensitive feature, whose levels are the declared `groups`; x0, x1, "
                "... are the features."
            ) from None

    @property
    def _model(self) -> Regression | Network:
        """Return the model of the last fit's release, a `Regression` or `Network`."""
        model = self.release_.model
        assert isinstance(model, Regression | Network)  # noqa: S101 - what the mechanisms of these estimators return
        return model

    def _in_their_unit(self, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (array of coefficients, predictors x features.

        Array of intercepts) of a regression, in features' unit. `features` is their number.
        """
        assert isinstance(self._model, Regression)  # noqa: S101 - a network has layers
        return self._unscaled(self._model.theta.reshape(1 + features, -1), features)

    def _unscaled(self, theta: NDArray[Any], features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (array of slopes, outputs x features; array of intercepts) in the features' own unit, from `theta`.

        This is an array (1 + features) x outputs, of scaled features, constants first; `features` is their number.
        """
        low, high = self._bounds(features)
        slopes = theta[1:].T / (high / 2 - low / 2)
        return slopes, theta[0] - slopes @ (low / 2 + high / 2)

    def _table(self, x: NDArray[Any], target: Any, column: Column, sensitive: Any, owners: Any = None) -> PrivateTable:
        """Return the `PrivateTable` of the rows: features `x`, group `sensitive`, values `target` of TARGET.

        `x` is an array, the others have an entry a row, as `owners`, the rows' units, if any; `column` declares TARGET.
        Where the group alone is protected, a row counts whatever its group: no declared level counts as the first.
        """
        low, high = self._bounds(x.shape[1])
        levels = self._levels()
        names = named(x)
        known = self.protect == "sensitive"
        columns: dict[str, Numeric | Categorical] = {
            name: Numeric(lower=float(a), upper=float(b), bins=1, public=known)
            for name, a, b in zip(names, low, high, strict=True)
        }
        group = Categorical(levels=tuple(map(str, range(len(levels)))), outside="0" if known else None)
        frame = pd.DataFrame({name: x[:, i] for i, name in enumerate(names)})
        frame[GROUP], frame[TARGET] = numbered(self._sensitive(len(x), sensitive), levels), target
        unit = self.owned(frame, owners)
        schema = Schema({**columns, GROUP: group, TARGET: replace(column, public=known)}, unit=unit)
        return open_table(frame, schema=schema, declared_size=self.declared_size, **self.account_settings())

    def _sensitive(self, rows: int, given: Any) -> NDArray[Any]:
        """Return an array of objects, each row's group as in `given`, or EVERYBODY where no groups are declared.

        There are so many `rows`; UsageError or ValueError if `given` is unfit.
        """
        if (given is None) != (self.groups is None):
            raise UsageError(
                "sensitive_features and groups go together: declare the groups' levels when making the estimator, and "
                "give each row's when fitting it."
            )
        check_kinds("sensitive_features", given, "groups", self._levels())
        found = np.full(rows, EVERYBODY, object) if given is None else each(given)
        if len(found) != rows:
            raise ValueError(f"sensitive_features has {len(found)} values for {rows} rows.")
        return found

    def _frame(self, x: Any) -> pd.DataFrame:
        """Return a pandas DataFrame of the features `x`, checked by scikit-learn, columns named x0, x1, ...."""
        check_is_fitted(self)
        x = validate_data(self, self.apart(x)[0], reset=False)
        return pd.DataFrame(dict(zip(named(x), x.T, strict=True)))


def check_kinds(what: str, given: Any, declared: str, levels: Sequence[Any]) -> None:
    """Refuse (UsageError on `what`) numbers in `given` where the declared `levels` are texts, or texts where numbers.

    `declared` names the parameter of the levels. Only the type of an array or a pandas column is looked at, and none of
    its values; of a list or of objects nothing.
    """
    kind: Any = getattr(given, "dtype", None)
    kind = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
    if kind is None or (getattr(kind, "kind", "O") == "O" and not isinstance(kind, pd.StringDtype)):
        return
    texts = pd.api.types.is_string_dtype(kind)
    if not texts and not pd.api.types.is_numeric_dtype(kind):  # truth values are numbers here
        return
    if levels and all(isinstance(level, str) != texts for level in levels):
        here, there = ("texts", "numbers") if texts else ("numbers", "texts")
        raise UsageError(
            f"{what} holds {here} (dtype {kind}), and the declared {declared} are {there}, such as {levels[0]!r}: no "
            f"row would match. Declare {declared} as the data have them."
        )


def each(given: Any) -> NDArray[Any]:
    """Return the values `given`, a list, array or column, as a flat array of objects, each unchanged.

    An array of one type would make texts of all numbers where one record has a text, and change what the others say.
    """
    return np.asarray(given, object).reshape(-1)


def numbered(values: NDArray[Any], levels: Sequence[Any]) -> NDArray[Any]:
    """Return an array of texts, one for each of `values`: its place among `levels`, from "0".

    `OTHER`, no level of the schema, for all others.
    """
    labels = {level: str(i) for i, level in enumerate(levels)}

    def label(value: Any) -> str:
        try:
            return labels.get(value, OTHER)
        except TypeError:  # a list, say, which equals no level
            return OTHER

    return np.array([label(value) for value in values.astype(object)], object)

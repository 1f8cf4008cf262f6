"""What scikit-learn asks of an estimator, without importing it: that takes a second, and most commands train nothing.

scikit-learn knows estimators by their methods, not by a base class (decision 85).
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from sfumato.errors import InvalidParameterError


class Estimator:
    """Parameters are those of the constructor, each kept under its own name; none of them is an estimator.

    Examples
    --------
    >>> from sfumato.mechanisms.mondrian.mechanism import Mondrian
    >>> Mondrian(split="gain").set_params(k=10)
    Mondrian(k=10, split='gain')
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the parameters by name; ``deep`` changes nothing."""
        return {name: getattr(self, name) for name in sorted(_defaults(self))}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters.

        Raises
        ------
        InvalidParameterError
            If there is no such parameter.
        """
        known = sorted(_defaults(self))
        for name, value in params.items():
            if name not in known:
                allowed = f"one of {', '.join(known)}"
                raise InvalidParameterError(f"parameter of {type(self).__name__}", f"got {name!r}", allowed=allowed)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _defaults(self)
        given = {name: getattr(self, name) for name in defaults}
        changed = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """Draw the estimator for notebooks, as scikit-learn draws its own."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_clone__(self) -> Self:
        from sklearn.base import clone

        return type(self)(**{name: clone(value, safe=False) for name, value in self.get_params().items()})

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _defaults(estimator: Estimator) -> dict[str, Any]:
    """Parameters of the constructor with their defaults."""
    return {name: one.default for name, one in inspect.signature(type(estimator)).parameters.items()}

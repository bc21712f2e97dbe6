"""What one model has done so far, for those who ask how it fares."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(slots=True)
class Tally:
    """Counters that only grow; the difference of two says what happened in between.

    Parameters
    ----------
    pictures : int
        That went through the model, failed ones included.
    errors : int
        Of those that failed.
    busy : float
        Seconds that the model took for them.
    answered : int
        Pictures that were sent one by one, and answered.
    waited : float
        Seconds from their coming to their answer, together.
    """

    pictures: int = 0
    errors: int = 0
    busy: float = 0.0
    answered: int = 0
    waited: float = 0.0

    def copy(self) -> Tally:
        """Return it as it is now."""
        return replace(self)

    def count(self, pictures: int, errors: int) -> None:
        """Count a batch.

        Parameters
        ----------
        pictures : int
            In it.
        errors : int
            Of those.
        """
        self.pictures += pictures
        self.errors += errors

"""What stands in a figure."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(figure: Figure) -> str:
    """All text of a figure."""
    return "\n".join(artist.get_text() for artist in figure.findobj(Text))


def hollow(axes: Axes) -> set[tuple[float, float]]:
    """Places of the marks for what the paper prints."""
    lines = [line for line in axes.get_lines() if line.get_marker() in {"D", "s"} and line.get_color() == "none"]
    return {(round(float(x), 3), round(float(y), 3)) for line in lines for x, y in zip(*line.get_data(), strict=True)}

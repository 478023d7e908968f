"""Curves: training and validation of one loss share a colour, and differ in line."""

from __future__ import annotations

from matplotlib.figure import Figure

from bleurt_repro.training.run import draw_curves


def test_a_loss_has_one_colour_in_training_and_validation(tmp_path, monkeypatch):
    drawn = {}
    save = Figure.savefig

    def keep(figure, *given, **options):
        drawn.update({line.get_label(): line for axes in figure.axes for line in axes.lines})
        return save(figure, *given, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    history = [
        {"step": step, "loss": 3.0 / step, "loss_bleu": 1.0 / step, "loss_rouge": 2.0 / step} for step in (1, 2, 3)
    ]
    history += [{"step": 3, "eval_loss": 1.1, "eval_loss_bleu": 0.4, "eval_loss_rouge": 0.7, "eval_kendall_tau": 0.5}]
    draw_curves({"history": history}, tmp_path / "curves.png")

    assert (tmp_path / "curves.png").stat().st_size > 0
    assert len(drawn) == 7
    colours = set()
    for name in ("loss", "loss bleu", "loss rouge"):
        training, validation = drawn[name], drawn[f"validation {name}"]
        assert training.get_color() == validation.get_color()
        assert (training.get_linestyle(), validation.get_linestyle()) == (":", "-")
        colours.add(training.get_color())
    assert len(colours) == 3

"""Figures of a paper from the telemetry of finished runs: nothing is run, and the same runs give the same bytes.

    spec      figs.yaml: arms (whose runs), looks (how they are called and drawn), figures
    arms      which runs an arm stands for, and whether a figure may show them together
    looks     style of all figures, and the registry of baselines: name, colour, line, marker
    units     quantities with their units, scaled to what is shown
    canvas    one panel at column width, and its files: PDF with embedded TrueType, PNG
    labels    words at a line, put where no curve is
    families  one file a kind of figure: its fields in figs.yaml, and how it is drawn
    book      all figures of a file in a folder, with their captions
    page      E1 to E5 of one run; tables as Markdown

Numbers come from `flame.analysis`. A new family is a file in `families/` and a line in its `__init__`.
"""

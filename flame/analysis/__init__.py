"""What a finished run has done, as tables: pure reducers over its telemetry, which never run anything again.

    curve         accuracy and loss in order: peak, sustained, reached, loss drop
    learned       one run's curve over time, commits, uploads, passes, bytes; what an accuracy has cost
    productivity  how far the loss fell per pass, per byte, per compute hour
    utilisation   what each trainer's time went into: computing, waiting, away
    traffic       bytes by direction and kind; weights that a trainer held already
    sessions      the stretches in which trainers could be used, and what came of each
    variance      how V falls within a bin, and where other commit rules would have stopped
    phases        where measured seconds went
    skew          class shares of clients, bins and cohorts, laid over accuracy
    seeds         several runs of one condition: mean and band
    comparison    baselines side by side, if they share their condition
    finished      which runs of a folder have ended; summary: one run in one JSON object

Everything stands at an instant in stamps, so that a simulated and a real run of one condition have equal rows; what
was measured says so in its name. Absent is None, never 0. Pictures of it: `flame.figures`.
"""

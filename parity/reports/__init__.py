"""The report of a pair: for a terminal, as JSON, as JUnit XML, as a page; and the documentation of the rungs."""

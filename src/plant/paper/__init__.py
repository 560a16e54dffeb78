"""Room 8: what ran, as tables, figures and one report. Reads the files of the other rooms and trains nothing."""

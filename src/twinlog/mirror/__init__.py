"""The twin: what makes the standby's log equal to the active's, offset by offset."""

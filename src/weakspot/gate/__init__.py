"""Does a Run keep to a policy? Rules with thresholds, judged by intervals; verdicts for people and for machines.

Nothing is imported here: the pytest plugin lies in this package and must cost nothing where it is not asked for.
"""

"""Running a call: one list of stages for every way in.

unwrap → scope → validate → guardrails → hooks → approval → checkpoint → dispatch → result limits → hooks, with
activity at every arrow (X13).
"""

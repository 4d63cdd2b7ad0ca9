"""How sure a list's answer is: calibrated probabilities, prediction sets, abstention."""

"""P(people prefer a system): fitted on human ratings, tested on others, reported."""

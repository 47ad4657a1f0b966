from weakspot.performance.metrics import class_scores as class_scores
from weakspot.performance.metrics import confusions as confusions
from weakspot.performance.metrics import r_squared as r_squared
from weakspot.performance.metrics import surely_worst as surely_worst
from weakspot.performance.probes import Performance as Performance

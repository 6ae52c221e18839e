from .records.block import Block as Block
from .records.finding import Advice as Advice
from .records.finding import Finding as Finding
from .records.finding import Trial as Trial
from .records.outcomes import Measured as Measured
from .records.whole_survey import Survey as Survey

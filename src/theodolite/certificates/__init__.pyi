from .certifying import certificate as certificate
from .reading import Certificate as Certificate
from .recognising import RecognisedSystem as RecognisedSystem
from .recognising import recognise as recognise

from .bounds import certificate as certificate
from .reading import Certificate as Certificate
from .recognition import recognise as recognise

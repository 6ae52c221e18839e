from .bounds import certificate as certificate
from .descent import CertifiedDescent as CertifiedDescent
from .guaranteed import GuaranteedStep as GuaranteedStep
from .guaranteed import guaranteed_step as guaranteed_step
from .reading import Certificate as Certificate
from .recognition import recognise as recognise

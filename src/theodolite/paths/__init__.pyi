from .lesions import Lesion as Lesion
from .lesions import lesion as lesion
from .measuring import path_ensemble as path_ensemble
from .reading import PathEnsemble as PathEnsemble
from .unravelled import UnravelledPaths as UnravelledPaths
from .unravelled import unravel as unravel

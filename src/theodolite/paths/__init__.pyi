from .ensemble import path_ensemble as path_ensemble
from .lesions import Lesion as Lesion
from .lesions import lesion as lesion
from .reading import PathEnsemble as PathEnsemble
from .single_paths import UnravelledPaths as UnravelledPaths
from .single_paths import unravel as unravel

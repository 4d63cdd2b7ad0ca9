import pytest

from mzseek.core.errors import MzseekError
from mzseek.parallel import LocalEngine, RayEngine, engine_named


def test_engines_by_name() -> None:
    assert isinstance(engine_named("local", 3), LocalEngine)
    ray = engine_named("ray", 3, "somewhere:6379")
    assert isinstance(ray, RayEngine)
    assert (ray.jobs, ray.address) == (3, "somewhere:6379")
    with pytest.raises(MzseekError, match="engine 'dask' is unknown, expected one of: local, ray"):
        engine_named("dask")
    with pytest.raises(MzseekError, match="engine 'local' has no address"):
        engine_named("local", address="somewhere:6379")

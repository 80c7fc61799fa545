"""A wheel that carries kernels is for one Python and one kind of machine; without them it is for all."""

from pathlib import Path

from setuptools import Distribution, setup


class Package(Distribution):
    def has_ext_modules(self) -> bool:
        return any(Path(__file__).parent.glob("src/trelliswork/runtime/shipped/*/*"))


setup(distclass=Package)

"""The version of the package, and of what its numbers depend on."""

__version__ = "0.1.0"
PACKAGES = ("numpy", "scipy", "rdkit")  # that the numbers of annotations depend on


def versions(*packages: str) -> dict[str, str]:
    """Return versions of mzseek, Python and packages; "missing" for one that is not installed.

    Examples
    --------
    >>> versions("no such package")["no such package"]
    'missing'
    """
    import platform  # here, since every command reads the version
    from importlib.metadata import PackageNotFoundError, version

    installed = {"mzseek": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "missing"
    return installed

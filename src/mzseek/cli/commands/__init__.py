"""Commands, one file each; `mzseek.cli.app` lists them."""

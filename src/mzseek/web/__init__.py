"""The web server: HTTP API, jobs and worker processes over `mzseek.annotation.Annotator`."""

"""Commands about reference spectra."""

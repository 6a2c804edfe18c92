"""Who works off the cases of a run: threads of this process, processes beside it, or workers of a Dask cluster."""

"""What every room needs: one run of a notebook, storage, parameters, statistics, tables, plots."""

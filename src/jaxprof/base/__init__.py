"""What every other package stands on: values, errors, units, text, files, limits, settings, processes, secrets."""

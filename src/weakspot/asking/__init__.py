"""From a model and data, as a file or as Python objects, to the answers: what command line and Python share."""

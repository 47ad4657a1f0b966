"""Look through a Run in the browser: samples, clusters, confused pairs, weak inputs, holes and lesions. Never torch."""

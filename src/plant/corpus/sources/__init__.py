"""One module a raw format; each reads its files into `plant.corpus.documents.Documents`."""

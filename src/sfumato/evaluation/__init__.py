"""What a recipient can still do with a release: classifiers trained on it and tested on rows it has not seen."""

"""What commands say to people: on stderr while they run, and in a few lines when they are done."""

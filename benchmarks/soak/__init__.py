"""Ten minutes of bad weather: kills, full disks, little memory, broken files, faulty parties, many clients."""

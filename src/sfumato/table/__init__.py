"""Tables: reading, coding, binarizing, writing."""

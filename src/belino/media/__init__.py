"""What we do to bytes: fetch them, name them, place them, and write the line that stands for them."""

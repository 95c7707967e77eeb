"""What lies on the disk: whole files in one folder, their names, and what is remembered of them."""

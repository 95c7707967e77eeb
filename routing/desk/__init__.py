"""What happens to one call: read, its tags obeyed, decided on."""

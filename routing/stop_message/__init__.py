"""stopMessage: carry on where the model stopped, with what the person wrote."""

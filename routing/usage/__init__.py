"""What answers cost: tokens as each provider told them, round by round, and money where its price is known."""

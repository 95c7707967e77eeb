"""Tags: `<**…**>` typed into the chat. Find them, read them, obey them, take them out."""

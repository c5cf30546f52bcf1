"""What both shells share around the network. Opens no socket, and knows no HTTP library: those are the shells' own."""

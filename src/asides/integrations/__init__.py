"""What the doors for users of other libraries share. Those libraries are loaded here and there only, when used."""

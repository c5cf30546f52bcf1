"""Messages and responses that other libraries hold, by structure: no library is imported and no class is named."""

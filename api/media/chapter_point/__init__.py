"""Chapter points and their custom properties."""

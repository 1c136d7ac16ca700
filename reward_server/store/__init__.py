"""Tables and queries; tables never leave this room."""

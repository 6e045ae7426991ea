"""What is taken of an operand that has parts: steps into JSON, fields of structs, keys of maps."""

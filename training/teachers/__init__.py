"""Teachers: small models for machines without the Hub and for other languages."""

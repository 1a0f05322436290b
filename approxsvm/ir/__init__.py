"""Intermediate representation: models as frozen, validated data, with their definitions."""

"""Intermediate representation of models: frozen, validated data and its definition."""

"""What a model is: frozen, validated data, and what it means."""

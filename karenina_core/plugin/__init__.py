"""Finding, loading and registering plugins; the registries that they fill; the application that holds them."""

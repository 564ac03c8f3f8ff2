//! What the server offers, as documents: groups, resources, aggregated discovery.

//! Server-side apply and who owns which field.

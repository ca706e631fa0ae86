//! Admission webhooks, and later the subresources.

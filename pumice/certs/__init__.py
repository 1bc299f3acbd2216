"""Serving certificates of the webhook: created, trusted, served and renewed automatically.

The API server trusts a webhook by the `caBundle` in the webhook's configuration. Pumice keeps two
certificate authorities in one Secret, the one that signs now and the one that will sign next, has both
trusted everywhere, and gives each process a short-lived certificate of its own:

    settings      durations, and which of them must exceed which
    authority     pure: create a CA, sign a leaf
    verification  pure: whether a client with a trust bundle accepts a leaf
    bundle        pure: the authorities in the Secret; damaged parts are skipped
    rotation      pure: which changes are due at a given time
    reload        the TLS context of the server, and certificates from files (cert-manager)
    injection     shell: keeps `caBundle` equal to the trust bundle
    keeper        shell: runs all of this, one check after the other

Rotation is safe by its order: a CA is in the trust bundle for one whole signing period before it signs; a process
serves a leaf only once every configuration trusts the leaf's CA; and a CA stays trusted until it expires, which is
later than any leaf that it signed.
"""

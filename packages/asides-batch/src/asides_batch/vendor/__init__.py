"""Batches that a provider runs itself, for less money and within a day: `vendor_runner` answers a batch that way.

`create_vendor_batch` groups requests and creates batches, `write_vendor_results` writes what became of them, and
`vendor_ledger` notes each batch before anybody waits for it. `forms` has the requests of each provider.
"""

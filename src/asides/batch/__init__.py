"""Batches: a file of questions in, a file of answers out, in the same order; each question is paid for once.

`batch_rows` reads the questions, and `load_rows` puts them into the ledger, which remembers what became of each
(`ledger`). A runner answers them: `live_runner`, or `vendor` for batches that a provider runs itself. `join_results`
writes the output. `Batch` and `AsyncBatch` put them together (`batches`).
"""

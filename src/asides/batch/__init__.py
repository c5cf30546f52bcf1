"""Batches: a file of questions in, a file of answers out, in the same order; each question is paid for once.

`batch_rows` reads the questions, `ledger` remembers what became of each, a runner answers them (`live_runner`), and
`join_results` writes the output. `Batch` and `AsyncBatch` put them together. Not here: the command (cli/batch).
"""

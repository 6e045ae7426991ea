"""What `guided sql` is made of: its options, asking a model, what is shown of an answer, and batches."""

"""One grammar met with one vocabulary: its tables, its kernels and what they ask for, and how its texts end."""

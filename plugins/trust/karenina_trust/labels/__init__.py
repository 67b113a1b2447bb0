"""What people say of the answers of a run: which answers are drawn, how people are asked, and the file of labels."""

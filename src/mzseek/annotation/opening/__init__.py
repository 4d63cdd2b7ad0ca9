"""What is made once of what a user names, before anything is answered, and given to processes."""

"""What every other part uses: arguments, messages, threads and the types of Arrow."""

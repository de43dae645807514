"""Config files, launch lines and serving commands: from a paste to a partial Run, each field with its key and line."""

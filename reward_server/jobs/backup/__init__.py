"""Backup and restore of everything a server keeps."""

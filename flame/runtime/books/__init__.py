"""What a run leaves behind while it goes, and how it is read back: journal, blobs, checkpoints, replay."""

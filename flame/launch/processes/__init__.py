"""The processes of a real run: who they are, what they are told, who watches them, and how more join from elsewhere."""

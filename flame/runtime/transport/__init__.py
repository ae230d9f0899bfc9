"""Messages between the processes of a real run: as bytes, in order, once each, over MQTT."""

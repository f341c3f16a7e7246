"""The words of the house: ids, messages, commands, replies, errors, settings and ports."""

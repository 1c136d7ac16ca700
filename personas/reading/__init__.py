"""Reading: what one agent turn says, whatever the state of the conversation. Text in, typed acts out."""

"""Numbers that labels of people vouch for, what they hold for, and gates on them."""

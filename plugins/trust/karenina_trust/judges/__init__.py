"""What the commands about judges share: trials, which are answers that are known, and the run that judges them."""
